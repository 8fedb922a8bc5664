// What all pages are made of: one file that fetches nothing and runs only its own scripts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace parsimony {

struct HtmlPage {
  std::string title;
  std::string_view style;
  std::string body;                       ///< markup
  std::string data_id;                    ///< of the element that carries `data`
  std::string data;                       ///< JSON
  std::vector<std::string_view> scripts;  ///< without them the data stay away, too
};

std::string to_html(const HtmlPage& page);

}  // namespace parsimony
