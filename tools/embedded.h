#pragma once

#include <string_view>

/// The files of tools/page, as embed.cmake compiles them in.
namespace lathe::tools::embedded {

extern const std::string_view page_html, page_css, model_js, layout_js, draw_js, main_js;

}  // namespace lathe::tools::embedded
