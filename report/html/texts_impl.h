// Texts of the page that are files in web/, or fetched, and built in.
#pragma once

#include <string_view>

namespace parsimony {

std::string_view page_style();
std::string_view page_script();
/// Vega, Vega-Lite and vega-embed; empty if they were not to be had when this was built.
std::string_view chart_library();

}  // namespace parsimony
