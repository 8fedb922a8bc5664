#include "parsimony/graph/model_editor.h"

#include "parsimony/graph/bypass.h"
#include "parsimony/graph/errors.h"

namespace parsimony {

void ModelEditor::set_number(const std::string& node, const std::string& attribute, double value) {
  throw errors::bad_attribute(node, attribute,
                              "cannot become " + std::to_string(value) + " in this format");
}

void ModelEditor::bypass(const std::string& node, int input) {
  static_cast<void>(input);
  throw errors::cannot_bypass(node);
}

}  // namespace parsimony
