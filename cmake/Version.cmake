# SPDX-License-Identifier: Apache-2.0
# The one version of everything here.
set(CLAIMD_RELEASE 0.1.0)
