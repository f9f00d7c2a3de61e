/* SPDX-License-Identifier: MIT
 * page_embed.c - the report page's viewer, as `make` built it from web/, compressed, inside the binary. A build without
 * node embeds nothing; html_write() then says what is missing. Holds bytes, does nothing. */
#ifdef PAGE_FILE
#define PAGE_BYTES ".incbin \"" PAGE_FILE "\"\n"
#else
#define PAGE_BYTES ""
#endif

__asm__(".section .rodata\n"
        ".global page_embed_begin\n.hidden page_embed_begin\n"
        ".global page_embed_end\n.hidden page_embed_end\n"
        ".balign 16\n"
        "page_embed_begin:\n" PAGE_BYTES "page_embed_end:\n"
        ".byte 0\n"
        ".previous\n");
