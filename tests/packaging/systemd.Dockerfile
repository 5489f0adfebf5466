# SPDX-License-Identifier: Apache-2.0
# Debian 12 with systemd and the servers that claimd needs. Built by tests/packaging/test_installed.sh, which starts it with a
# command of its own. apt's lists stay: the packages' dependencies are fetched by the test.
FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends systemd systemd-sysv postgresql redis-server procps
RUN systemctl disable redis-server.service
