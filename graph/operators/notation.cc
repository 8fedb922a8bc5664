#include "parsimony/graph/operators/notation.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <stdexcept>

#include "parsimony/base/ranges.h"

namespace parsimony::notation {
namespace {

constexpr std::pair<std::string_view, LabelRole> kRoles[] = {{"group", LabelRole::kGroup},
                                                             {"head", LabelRole::kHead},
                                                             {"head_dim", LabelRole::kHeadDim},
                                                             {"rotary", LabelRole::kRotary},
                                                             {"value_dim", LabelRole::kValueDim}};

/// Recursive descent over one alternative of a line.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Line line() {
    do {
      line_.alternatives.push_back(alternative());
    } while (accept("|"));
    if (skip_space(); at_ != text_.size()) fail("end of line");
    return std::move(line_);
  }

 private:
  Alternative alternative() {
    Alternative result;
    while (!accept("->")) result.inputs.push_back(operand());
    while (skip_space(), at_ < text_.size() && text_[at_] != ';' && text_[at_] != '|') {
      result.outputs.push_back(operand());
    }
    while (accept(";")) clause(result);
    return result;
  }

  Operand operand() {
    Operand result;
    result.name = word();
    result.variadic = accept("*");
    result.broadcast = accept("~");
    result.divisor = accept("!");
    expect("[");
    while (!accept("]")) result.dims.push_back(dim());
    result.optional = accept("?");
    return result;
  }

  Dim dim() {
    if (accept("..")) return {true, {word()}};
    if (!accept("(")) return {false, {word()}};
    Dim product;
    while (!accept(")")) product.labels.push_back(word());
    return product;
  }

  void clause(Alternative& result) {
    if (accept("|..")) {
      Binding binding{word(), true, {}, 0};
      expect("|");
      result.bindings.push_back(bound(std::move(binding)));
      return;
    }
    const std::string head = word();
    if (head == "pin") {
      words(result.pins);
    } else if (head == "mixes") {
      words(result.mixes);
    } else if (head == "macs") {
      do {
        words(result.macs.emplace_back());
      } while (accept("+"));
    } else if (head == "role") {
      const LabelRole named = role();
      std::vector<std::string> labels;
      words(labels);
      for (std::string& label : labels) line_.roles.emplace_back(std::move(label), named);
    } else if (head == "swap") {
      std::string operand = word();
      result.swaps.push_back({std::move(operand), word()});
    } else if (head == "since") {
      result.since = static_cast<int>(number());
    } else if (head == "until") {
      result.until = static_cast<int>(number());
    } else if (head == "if") {
      std::string attribute = word();
      const bool or_absent = accept("?");
      expect("=");
      result.conditions.push_back({std::move(attribute), word(), or_absent});
    } else {
      result.bindings.push_back(bound({head, false, {}, 0}));
    }
  }

  LabelRole role() {
    const std::string name = word();
    for (const auto& [known, role] : kRoles) {
      if (known == name) return role;
    }
    fail("a role");
  }

  Binding bound(Binding binding) {
    expect("=");
    if (word() != "attr") fail("'attr'");
    binding.attribute = word();
    binding.fallback = number();
    return binding;
  }

  void words(std::vector<std::string>& into) {
    while (skip_space(), at_ < text_.size() && is_word(text_[at_])) into.push_back(word());
  }

  std::string word() {
    skip_space();
    const size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    if (at_ == begin) fail("a name");
    return std::string(text_.substr(begin, at_ - begin));
  }

  long number() {
    skip_space();
    long value = 0;
    const auto [end, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) fail("a number");
    at_ = end - text_.data();
    return value;
  }

  bool accept(std::string_view token) {
    skip_space();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  void expect(std::string_view token) {
    if (!accept(token)) fail("'" + std::string(token) + "'");
  }

  [[noreturn]] void fail(const std::string& wanted) const {
    throw std::invalid_argument("operator line \"" + std::string(text_) + "\", column " +
                                std::to_string(at_ + 1) + ": wanted " + wanted);
  }

  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }

  static bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  }

  std::string_view text_;
  size_t at_ = 0;
  Line line_;
};

/// Is there a label of this name, or (`ellipsis`) any number of dimensions?
bool dim_named(const Alternative& alternative, const std::string& name, bool ellipsis = false) {
  for (const auto* side : {&alternative.inputs, &alternative.outputs}) {
    for (const Operand& operand : *side) {
      for (const Dim& dim : operand.dims) {
        if ((dim.ellipsis || !ellipsis) && contains(dim.labels, name)) return true;
      }
    }
  }
  return false;
}

bool operand_named(const Alternative& alternative, const std::string& name) {
  const auto has = [&](const std::vector<Operand>& side) {
    return std::ranges::any_of(side, [&](const Operand& o) { return o.name == name; });
  };
  return has(alternative.inputs) || has(alternative.outputs);
}

void require(bool known, const std::string& name, std::string_view text) {
  if (known) return;
  throw std::invalid_argument("operator line \"" + std::string(text) + "\": '" + name +
                              "' is not there");
}

bool is_counted(const Alternative& alternative, const std::string& name) {
  return std::ranges::any_of(alternative.macs,
                             [&](const auto& product) { return contains(product, name); });
}

void check_names(const Alternative& alternative, std::string_view text) {
  for (const Binding& b : alternative.bindings) {
    const bool is_factor = !b.counts_dims && is_counted(alternative, b.label);
    require(is_factor || dim_named(alternative, b.label, b.counts_dims), b.label, text);
  }
  const auto is_bound = [&](const std::string& name) {
    return std::ranges::any_of(alternative.bindings,
                               [&](const Binding& b) { return b.label == name; });
  };
  for (const auto* list : {&alternative.pins, &alternative.mixes}) {
    for (const std::string& name : *list) require(dim_named(alternative, name), name, text);
  }
  for (const auto& product : alternative.macs) {
    for (const std::string& name : product) {
      const bool known =
          operand_named(alternative, name) || dim_named(alternative, name) || is_bound(name);
      require(known, name, text);
    }
  }
  for (const Swap& swap : alternative.swaps)
    require(operand_named(alternative, swap.operand), swap.operand, text);
}

}  // namespace

Line parse(std::string_view text) {
  Line line = Parser(text).line();
  for (const Alternative& alternative : line.alternatives) check_names(alternative, text);
  for (const auto& [label, role] : line.roles) {
    const auto names = [&, name = label](const Alternative& each) { return dim_named(each, name); };
    require(std::ranges::any_of(line.alternatives, names), label, text);
  }
  return line;
}

LabelRole Line::role_of(std::string_view label) const {
  for (const auto& [name, role] : roles) {
    if (name == label) return role;
  }
  return LabelRole::kPlain;
}

}  // namespace parsimony::notation
