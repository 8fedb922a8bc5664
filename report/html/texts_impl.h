// Embedded files of the pages, from web/ or downloaded at build time.
#pragma once

#include <string_view>

namespace parsimony {

std::string_view page_style();
std::string_view page_script();
std::string_view network_body();
std::string_view network_style();
std::string_view network_script();
/// Returns Vega, Vega-Lite and vega-embed; empty if they were not available at build time.
std::string_view chart_library();

}  // namespace parsimony
