#include "parsimony/graph/operators/notation.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "parsimony/base/ranges.h"

namespace parsimony::notation {
namespace {

constexpr std::pair<std::string_view, LabelRole> kRoles[] = {
    {"expert", LabelRole::kExpert}, {"group", LabelRole::kGroup},
    {"head", LabelRole::kHead},     {"head_dim", LabelRole::kHeadDim},
    {"rotary", LabelRole::kRotary}, {"value_dim", LabelRole::kValueDim}};

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

bool is_counted(const Alternative& alternative, const std::string& name) {
  return std::ranges::any_of(alternative.macs,
                             [&](const auto& product) { return contains(product, name); });
}

bool limits(const Alternative& alternative, const std::string& name) {
  return std::ranges::any_of(alternative.least,
                             [&](const Least& least) { return least.number == name; });
}

/// The kind of thing that a name in a clause must refer to.
enum class Named : uint8_t { kLabel, kEllipsis, kOperand, kSize, kFactor, kBound };

/// A name in a clause, which may stand before what it refers to.
struct Mention {
  std::string name;
  size_t at = 0;
  Named named = Named::kLabel;
};

bool is_there(const Alternative& in, const Mention& mention) {
  const std::string& name = mention.name;
  const auto binds = [&](const Binding& binding) { return binding.label == name; };
  switch (mention.named) {
    case Named::kLabel:
      return dim_named(in, name);
    case Named::kEllipsis:
      return dim_named(in, name, true);
    case Named::kOperand:
      return operand_named(in, name);
    case Named::kSize:
      return dim_named(in, name) || is_counted(in, name) || limits(in, name);
    case Named::kFactor:
      return operand_named(in, name) || dim_named(in, name) ||
             std::ranges::any_of(in.bindings, binds);
    case Named::kBound:
      return std::ranges::any_of(in.bindings, binds);
  }
  return false;
}

/// Recursive descent over one alternative of a line.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Line line() {
    do {
      line_.alternatives.push_back(alternative());
    } while (accept("|"));
    if (skip_space(); at_ != text_.size()) fail("end of line");
    for (const Mention& label : labels_of_roles_) {
      const auto has = [&](const Alternative& each) { return is_there(each, label); };
      if (std::ranges::none_of(line_.alternatives, has)) refuse(label);
    }
    return std::move(line_);
  }

 private:
  Alternative alternative() {
    Alternative result;
    while (!accept("->")) result.inputs.push_back(operand());
    while (skip_space(), at_ < text_.size() && text_[at_] != ';' && text_[at_] != '|') {
      result.outputs.push_back(operand());
    }
    mentions_.clear();
    while (accept(";")) clause(result);
    for (const Mention& mention : mentions_) {
      if (!is_there(result, mention)) refuse(mention);
    }
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
    if (!accept("(")) return {false, {label()}};
    Dim product;
    while (!accept(")")) product.labels.push_back(label());
    return product;
  }

  void clause(Alternative& result) {
    if (accept("|..")) {
      Binding binding{mentioned(Named::kEllipsis), true, {}, 0};
      expect("|");
      result.bindings.push_back(bound(std::move(binding)));
      return;
    }
    skip_space();
    const size_t begin = at_;
    const std::string head = word();
    if (head == "pin") {
      names(result.pins, Named::kLabel);
    } else if (head == "mixes") {
      names(result.mixes, Named::kLabel);
    } else if (head == "least") {
      std::string label = mentioned(Named::kLabel);
      result.least.push_back({std::move(label), mentioned(Named::kBound)});
    } else if (head == "macs") {
      do {
        names(result.macs.emplace_back(), Named::kFactor);
      } while (accept("+"));
    } else if (head == "role") {
      const LabelRole named = role();
      while (names_follow()) {
        labels_of_roles_.push_back({{}, at_});
        line_.roles.emplace_back(labels_of_roles_.back().name = word(), named);
      }
    } else if (head == "swap") {
      std::string operand = mentioned(Named::kOperand);
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
      mentions_.push_back({head, begin, Named::kSize});
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

  /// A name, or a size.
  std::string label() {
    skip_space();
    const size_t begin = at_;
    std::string text = word();
    int64_t size = 1;
    const bool is_name = std::isdigit(static_cast<unsigned char>(text[0])) == 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (is_name || (error == std::errc() && *end == 0 && size > 0)) return text;
    at_ = begin;
    fail("a label, or a size");
  }

  bool names_follow() {
    skip_space();
    return at_ < text_.size() && is_word(text_[at_]);
  }

  void names(std::vector<std::string>& into, Named named) {
    while (names_follow()) into.push_back(mentioned(named));
  }

  std::string mentioned(Named named) {
    skip_space();
    const size_t begin = at_;
    return mentions_.emplace_back(Mention{word(), begin, named}).name;
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

  [[noreturn]] void fail(const std::string& requested) const {
    throw SyntaxError(text_, at_, "expected " + requested);
  }

  [[noreturn]] void refuse(const Mention& mention) const {
    throw SyntaxError(text_, mention.at, "'" + mention.name + "' is not there");
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
  std::vector<Mention> mentions_;  ///< of the alternative
  std::vector<Mention> labels_of_roles_;
};

}  // namespace

Line parse(std::string_view text) { return Parser(text).line(); }

LabelRole Line::role_of(std::string_view label) const {
  for (const auto& [name, role] : roles) {
    if (name == label) return role;
  }
  return LabelRole::kPlain;
}

}  // namespace parsimony::notation
