#include "parsimony/report/html/markup_impl.h"
#include "parsimony/report/text.h"

namespace parsimony {

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return printable(out);
}

std::string script_safe(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    // Outside of strings JSON has none of these, and within them an escape means the same.
    if (c == '<' || c == '>' || c == '&') {
      out += c == '<' ? "\\u003c" : c == '>' ? "\\u003e" : "\\u0026";
    } else {
      out += c;
    }
  }
  return out;
}

std::string html_table(std::string_view caption, const Cells& names, size_t left,
                       const std::vector<Cells>& rows) {
  const auto begin = [&](const char* tag, size_t column) {
    return std::string("<") + tag + (column < left ? ">" : " class=\"number\">");
  };
  std::string text = "<div class=\"scroller\" role=\"region\" tabindex=\"0\" aria-label=\"" +
                     escaped(caption) + "\"><table><caption>" + escaped(caption) +
                     "</caption>\n<thead><tr>";
  for (size_t i = 0; i < names.size(); ++i) {
    text += begin("th scope=\"col\"", i) + escaped(names[i]) + "</th>";
  }
  text += "</tr></thead>\n<tbody>\n";
  for (const Cells& row : rows) {
    text += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) {
      const char* const tag = i == 0 ? "th" : "td";
      text += begin(i == 0 ? "th scope=\"row\"" : tag, i) + escaped(row[i]) + "</" + tag + ">";
    }
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

}  // namespace parsimony
