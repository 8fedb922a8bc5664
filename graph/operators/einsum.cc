// Einsum: the equation is a line of the notation in other words: "bij,bjk->bik" is
// x0[b i j] x1[b j k] -> y[b i k].
#include <cctype>
#include <map>

#include "parsimony/graph/errors.h"
#include "parsimony/graph/operators/families.h"
#include "parsimony/graph/operators/match.h"

namespace parsimony::operators {
namespace {

std::string operand(const std::string& name, std::string_view term) {
  std::string text = name + "[";
  for (size_t i = 0; i < term.size(); ++i) {
    if (term.substr(i).starts_with("...")) {
      text += " ..rest";
      i += 2;
    } else {
      text += std::string(" ") + term[i];
    }
  }
  return text + "] ";
}

/// Without "->" the result has the labels that stand once, in alphabetical order.
std::string implicit_result(std::string_view inputs) {
  std::map<char, int> count;
  for (const char c : inputs) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) ++count[c];
  }
  std::string result = inputs.find("...") != std::string_view::npos ? "..." : "";
  for (const auto& [label, n] : count) {
    if (n == 1) result += label;
  }
  return result;
}

}  // namespace

notation::Line line_of_einsum(const NodeView& view) {
  std::string equation = view.attr("equation", "");
  std::erase_if(equation, [](unsigned char c) { return std::isspace(c) != 0; });
  const size_t arrow = equation.find("->");
  const std::string inputs = equation.substr(0, arrow);
  const std::string result =
      arrow == std::string::npos ? implicit_result(inputs) : equation.substr(arrow + 2);
  std::string text;
  std::string names;
  size_t begin = 0;
  for (int i = 0;; ++i) {
    const size_t comma = inputs.find(',', begin);
    const std::string name = "x" + std::to_string(i);
    text += operand(name, std::string_view{inputs}.substr(begin, comma - begin));
    names += " " + name;
    if (comma == std::string::npos) break;
    begin = comma + 1;
  }
  try {
    const bool multiplies = inputs.find(',') != std::string::npos;
    return notation::parse(text + "-> " + operand("y", result) +
                           (multiplies ? "; macs y" + names : ""));
  } catch (const std::invalid_argument& error) {
    throw errors::bad_attribute(view.label(), "equation", error.what());
  }
}

Shapes infer_einsum(const NodeView& view) { return infer_line(line_of_einsum(view), view); }

Factors factor_einsum(const NodeView& view) {
  Factors factors = factor_line(line_of_einsum(view), view);
  // Labels of a single operand are summed, not windows.
  for (Label& label : factors.labels) {
    if (label.contracted) label.window = false;
  }
  return factors;
}

}  // namespace parsimony::operators
