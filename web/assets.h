/* SPDX-License-Identifier: Apache-2.0
 *
 * The page's files: those of web/assets, which cmake/EmbedAssets.cmake puts into the program, or
 * those of web.assets_dir. */
#ifndef CLAIMD_WEB_ASSETS_H
#define CLAIMD_WEB_ASSETS_H

#include "web/request.h"

struct web_asset {
    const char *name; /* "ui/pill.js"; NULL at the end of the list */
    const char *hash; /* of its content */
    const unsigned char *plain;
    size_t plain_len;
    const unsigned char *packed; /* gzip */
    size_t packed_len;
};
extern const struct web_asset web_assets[];

/* Answers with the file of that name, or 304 if the browser has it. `folder` "" = the embedded
 * ones. */
void assets_reply(const char *folder, const char *name, const struct web_request *q,
                  struct web_reply *r);

#endif
