/* SPDX-License-Identifier: MIT
 * page_embed.c - the report page's viewer and the files of the server's pages, as `make` built them from web/,
 * compressed, inside the binary. A build without node embeds nothing; html_write() and the server then say what is
 * missing. Holds bytes, does nothing. */
#ifdef PAGE_FILES
#define BYTES(name) ".incbin \"" PAGE_FILES "/" name ".gz\"\n"
#else
#define BYTES(name) ""
#endif

#define EMBED(symbol, name)                                            \
    ".global " symbol "_begin\n.hidden " symbol "_begin\n"             \
    ".global " symbol "_end\n.hidden " symbol "_end\n"                 \
    ".balign 16\n" symbol "_begin:\n" BYTES(name) symbol "_end:\n.byte 0\n"

__asm__(".section .rodata\n" EMBED("page_embed", "page.html") EMBED("app_page", "app.html")
            EMBED("app_script", "app.js") EMBED("app_style", "app.css") ".previous\n");
