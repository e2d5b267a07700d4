#pragma once

#include <string_view>

/// The files of tools/page and tools/page/walkthrough, embedded by embed.cmake.
namespace lathe::tools {

extern const std::string_view embedded_page_html, embedded_page_css, embedded_model_js, embedded_layout_js,
    embedded_draw_js, embedded_main_js, embedded_walkthrough_html, embedded_walkthrough_css, embedded_numbers_js,
    embedded_walkthrough_js;

}  // namespace lathe::tools
