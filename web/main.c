/* SPDX-License-Identifier: Apache-2.0
 *
 * The main program of claimd-web. */
#include "daemon/daemon.h"
#include "web/web.h"

int main(int argc, char **argv)
{
    static const struct daemon_program program = {
        .name = "claimd-web",
        .what = "Serves the page and the API (REST, JSON, live events) over PostgreSQL.\n"
                "Signals: TERM and INT end it, HUP reads the tokens again.\n",
        .run = web_main,
        .is_without_nodes = true};
    return daemon_main(&program, argc, argv);
}
