#include "parsimony/report/html/network.h"

#include "parsimony/report/html/shell_impl.h"
#include "parsimony/report/html/texts_impl.h"

namespace parsimony {

std::string to_html(const NetworkPicture& picture) {
  HtmlPage page;
  page.title = picture.model + " – Parsimony";
  page.style = network_style();
  page.body = std::string(network_body());
  page.data_id = "network-data";
  page.data = to_json(picture);
  const std::string script =
      "'use strict';\n(() => {\n" + std::string(network_script()) + "})();\n";
  page.scripts = {script};
  return to_html(page);
}

}  // namespace parsimony
