#include "parsimony/graph/operators/rules_file.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parsimony/base/files.h"
#include "parsimony/graph/errors.h"
#include "parsimony/graph/operators/notation.h"
#include "parsimony/graph/operators/schema.h"

namespace parsimony::rules {
namespace {

template <typename Value>
using Word = std::pair<std::string_view, Value>;

constexpr std::array<Word<ZeroBehaviour>, 9> kZeroWords = {
    {{"constant", ZeroBehaviour::kConstant},
     {"first", ZeroBehaviour::kFirst},
     {"normalised", ZeroBehaviour::kNormalised},
     {"product", ZeroBehaviour::kProduct},
     {"quotient", ZeroBehaviour::kQuotient},
     {"shifted", ZeroBehaviour::kShifted},
     {"undefined", ZeroBehaviour::kUndefined},
     {"zero", ZeroBehaviour::kZero},
     {"zeros", ZeroBehaviour::kZeros}}};

constexpr std::array<Word<ResultType>, 5> kResultWords = {
    {{"bool", ResultType::kBool},
     {"int64", ResultType::kInt64},
     {"of-first", ResultType::kOfFirst},
     {"of-second", ResultType::kOfSecond},
     {"second-is-int64", ResultType::kSecondIsInt64}}};

constexpr std::array<Word<LinearKind>, 7> kLinearWords = {
    {{"attention", LinearKind::kAttention},
     {"contraction", LinearKind::kContraction},
     {"convolution", LinearKind::kConvolution},
     {"lookup", LinearKind::kLookup},
     {"matrix-product", LinearKind::kMatrixProduct},
     {"recurrence", LinearKind::kRecurrence},
     {"transposed-convolution", LinearKind::kTransposedConvolution}}};

// Traits about shapes and lists are left out: their operators have functions of their own.
constexpr std::array<Word<Trait>, 18> kTraitWords = {{{"adds", kAdds},
                                                      {"attends", kAttends},
                                                      {"chooses", kChooses},
                                                      {"copies", kCopies},
                                                      {"divides", kDivides},
                                                      {"draws", kDraws},
                                                      {"homogeneous", kHomogeneous},
                                                      {"likelihoods", kLikelihoods},
                                                      {"multiplies", kMultiplies},
                                                      {"pads", kPads},
                                                      {"pairs", kPairs},
                                                      {"permutes", kPermutes},
                                                      {"outcomes", kOutcomes},
                                                      {"probabilities", kProbabilities},
                                                      {"reads-integers", kReadsIntegers},
                                                      {"rectifies", kRectifies},
                                                      {"reduces", kReduces},
                                                      {"sums", kSums}}};

constexpr std::string_view kBlank = " \t\r";

/// A place in the file, counted from 1.
struct Position {
  size_t line = 1;
  size_t column = 1;
};

struct Token {
  std::string_view text;
  Position place;
};

/// One line of the file without its comment, read from left to right.
class Reading {
 public:
  Reading(std::string_view line, size_t number) : line_(line.substr(0, line.find('#'))) {
    place_.line = number;
    line_ = line_.substr(0, line_.find_last_not_of(kBlank) + 1);
    skip_blank();
  }

  bool at_end() const { return at_ == line_.size(); }
  Position place() const { return {place_.line, at_ + 1}; }
  char next() const { return line_[at_]; }

  Token word() {
    const Position begin = place();
    const size_t end = std::min(line_.find_first_of(kBlank, at_), line_.size());
    const std::string_view text = line_.substr(at_, end - at_);
    at_ = end;
    skip_blank();
    return {text, begin};
  }

  Token rest() {
    const Token all{line_.substr(at_), place()};
    at_ = line_.size();
    return all;
  }

 private:
  void skip_blank() { at_ = std::min(line_.find_first_not_of(kBlank, at_), line_.size()); }

  std::string_view line_;
  size_t at_ = 0;
  Position place_;
};

/// The notation of one operator, which may stand on several lines.
class NotationText {
 public:
  void append(const Token& part, std::string_view joint) {
    if (!text_.empty()) text_ += joint;
    parts_.push_back({text_.size(), part.text.size(), part.place});
    text_ += part.text;
  }

  const std::string& text() const { return text_; }

  /// Returns where a character of the text stands; in a joint, behind the part in front.
  Position place_of(size_t at) const {
    const auto after = std::ranges::upper_bound(parts_, at, {}, &Part::offset);
    const Part& part = *std::prev(after);
    return {part.place.line, part.place.column + std::min(at - part.offset, part.size)};
  }

 private:
  struct Part {
    size_t offset, size;
    Position place;
  };

  std::string text_;
  std::vector<Part> parts_;
};

class RulesReader {
 public:
  explicit RulesReader(const std::string& file_name) : file_name_(file_name) {}

  std::vector<OperatorRule> read(std::string_view text) {
    for (size_t number = 1; !text.empty(); ++number) {
      const size_t end = std::min(text.find('\n'), text.size());
      read_line(Reading(text.substr(0, end), number));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    complete();
    return std::move(rules_);
  }

 private:
  using Setter = std::function<void(int operand)>;

  /// An operand that a key names. The notation may stand below it.
  struct Reference {
    Token operand;
    Setter set;
  };

  [[noreturn]] void fail(Position at, const std::string& why) const {
    throw ConfigError(file_name_, ":", at.line, ":", at.column, ": ", why);
  }

  void read_line(Reading reading) {
    if (reading.at_end()) return;
    if (reading.next() == '|' || reading.next() == ';') {
      if (notation_.text().empty()) fail(reading.place(), "there is no notation to go on with");
      notation_.append(reading.rest(), " ");
      return;
    }
    const Token key = reading.word();
    if (key.text == "operator") {
      complete();
      begin(reading);
    } else if (rules_.empty()) {
      fail(key.place, "found " + in_quotes(key.text) + ", expected operator DOMAIN::NAME");
    } else {
      read_key(key, reading);
    }
    if (reading.at_end()) return;
    const Token more = reading.word();
    fail(more.place, in_quotes(more.text) + " is too much");
  }

  void begin(Reading& reading) {
    const Token name = value(reading, "a name such as acme::Gelu");
    header_ = name;
    notation_ = {};
    seen_.clear();
    references_.clear();
    OperatorRule& rule = rules_.emplace_back();
    const size_t colons = name.text.rfind("::");
    const bool qualified = colons != std::string_view::npos;
    rule.op = name.text.substr(qualified ? colons + 2 : 0);
    if (qualified) rule.domain = name.text.substr(0, colons);
    if (rule.domain == "ai.onnx") rule.domain.clear();
    if (rule.op.empty()) fail(name.place, "expected a name such as acme::Gelu");
    const auto is_same = [&](const OperatorRule& other) {
      return &other != &rule && other.op == rule.op && other.domain == rule.domain;
    };
    if (find_schema(rule.domain, rule.op) != nullptr || std::ranges::any_of(rules_, is_same)) {
      fail(name.place, errors::known_operator(rule.domain, rule.op).what());
    }
  }

  void read_key(const Token& key, Reading& reading) {
    OperatorRule& rule = rules_.back();
    OpSchema& schema = rule.schema;
    if (key.text != "line" && !seen_.emplace(key.text).second) {
      fail(key.place, in_quotes(key.text) + " stands twice");
    }
    if (key.text == "line") {
      if (reading.at_end()) fail(reading.place(), "expected the notation: x[..s] -> y[..s]");
      notation_.append(reading.rest(), " | ");
    } else if (key.text == "zero") {
      schema.zero = one_of_words(reading, std::span(kZeroWords));
    } else if (key.text == "result") {
      schema.result = one_of_words(reading, std::span(kResultWords));
    } else if (key.text == "traits") {
      do {
        schema.traits |= one_of_words(reading, std::span(kTraitWords));
      } while (!reading.at_end());
    } else if (key.text == "scale") {
      rule.scale = value(reading, "an attribute").text;
    } else if (key.text == "linear") {
      read_linear(reading, rule);
    } else if (key.text == "norm") {
      read_norm(reading, schema.norm);
    } else if (key.text == "integers") {
      read_integers(reading, schema.integers, rule.bits);
    } else if (key.text == "data") {
      read_integers(reading, schema.data, rule.bits_of_data);
    } else {
      unknown(key, {"operator", "line", "zero", "result", "traits", "scale", "linear", "norm",
                    "integers", "data"});
    }
  }

  void read_linear(Reading& reading, OperatorRule& rule) {
    Linear& linear = rule.schema.linear;
    linear.kind = one_of_words(reading, std::span(kLinearWords));
    if (!seen_.contains("zero")) rule.schema.zero = ZeroBehaviour::kProduct;
    while (!reading.at_end()) {
      const Token word = reading.word();
      if (word.text == "weight") {
        refer(reading, [&linear](int operand) { linear.weights |= 1U << operand; });
      } else if (word.text == "bias") {
        refer(reading, [&linear](int operand) { linear.bias = operand; });
      } else if (word.text == "layer") {
        rule.layer = value(reading, "a name such as Gemm").text;
      } else if (word.text == "plain") {
        linear.plain = true;
      } else {
        unknown(word, {"weight", "bias", "layer", "plain"});
      }
    }
  }

  void read_norm(Reading& reading, Norm& norm) {
    do {
      const Token word = value(reading, "gain, shift or statistics");
      int* const to = word.text == "gain"         ? &norm.gain
                      : word.text == "shift"      ? &norm.shift
                      : word.text == "statistics" ? &norm.statistics
                                                  : nullptr;
      if (to == nullptr) unknown(word, {"gain", "shift", "statistics"});
      refer(reading, [to](int operand) { *to = operand; });
    } while (!reading.at_end());
  }

  void read_integers(Reading& reading, IntegerOperand& integers, std::string& bits) {
    refer(reading, [&integers](int operand) { integers.operand = operand; });
    while (!reading.at_end()) {
      const Token word = reading.word();
      if (word.text == "scale") {
        refer(reading, [&integers](int operand) { integers.scale = operand; });
      } else if (word.text == "zero-point") {
        refer(reading, [&integers](int operand) { integers.zero_point = operand; });
      } else if (word.text == "bits") {
        bits = value(reading, "an attribute").text;
      } else {
        unknown(word, {"scale", "zero-point", "bits"});
      }
    }
  }

  Token value(Reading& reading, const char* expected) const {
    if (reading.at_end()) fail(reading.place(), "expected " + std::string(expected));
    return reading.word();
  }

  void refer(Reading& reading, Setter set) {
    references_.push_back({value(reading, "an operand of the notation"), std::move(set)});
  }

  template <typename Value, size_t kCount>
  Value one_of_words(Reading& reading, std::span<const Word<Value>, kCount> words) const {
    std::vector<std::string_view> names;
    for (const auto& [name, meaning] : words) names.push_back(name);
    const Position at = reading.place();
    const std::string_view found = reading.at_end() ? std::string_view{} : reading.word().text;
    for (const auto& [name, meaning] : words) {
      if (name == found) return meaning;
    }
    fail(at, (found.empty() ? "expected " : "found " + in_quotes(found) + ", expected ") +
                 one_of(names));
  }

  [[noreturn]] void unknown(const Token& word, const std::vector<std::string>& known) const {
    const std::vector<std::string_view> words(known.begin(), known.end());
    const std::string near = did_you_mean(word.text, known);
    fail(word.place, "unknown word " + in_quotes(word.text) +
                         (near.empty() ? ", expected " + one_of(words) : "." + near));
  }

  /// Ends the last operator: all that it says is known.
  void complete() {
    if (rules_.empty()) return;
    OperatorRule& rule = rules_.back();
    rule.line = notation_.text();
    if (rule.line.empty()) fail(header_.place, "lacks a \"line\" with its notation");
    notation::Line line;
    try {
      line = notation::parse(rule.line);
    } catch (const notation::SyntaxError& error) {
      fail(notation_.place_of(error.at()), error.fault());
    }
    check_sides(line, rule.schema);
    for (const Reference& reference : references_) reference.set(place_in(line, reference.operand));
    check_statistics(line, rule.schema.norm);
  }

  void check_sides(const notation::Line& line, const OpSchema& schema) const {
    const bool two = schema.linear.kind != LinearKind::kNotLinear ||
                     (schema.traits & (kAdds | kMultiplies | kDivides)) != 0;
    for (const notation::Alternative& each : line.alternatives) {
      if (each.outputs.empty()) fail(header_.place, "the notation has no result behind ->");
      if (each.inputs.empty() || each.inputs.front().optional) {
        fail(header_.place, "the notation wants an operand in front that is always there");
      }
      if (two && each.inputs.size() < 2) {
        fail(header_.place, "a layer, a sum, a product or a quotient has two operands or more");
      }
      check_names(each);
    }
  }

  /// Plans and errors show them.
  void check_names(const notation::Alternative& alternative) const {
    std::set<std::string_view> names;
    for (const auto* side : {&alternative.inputs, &alternative.outputs}) {
      for (const notation::Operand& operand : *side) {
        if (!names.emplace(operand.name).second) {
          fail(header_.place, "two operands are called " + in_quotes(operand.name));
        }
        if (operand.variadic && &operand != &alternative.inputs.back()) {
          fail(header_.place, "operand " + in_quotes(operand.name) +
                                  " is not the last, so it cannot stand for several");
        }
      }
    }
  }

  /// The position of an operand, the same in all alternatives that have it.
  int place_in(const notation::Line& line, const Token& operand) const {
    int place = -1;
    for (const notation::Alternative& each : line.alternatives) {
      const auto found = std::ranges::find(each.inputs, operand.text, &notation::Operand::name);
      if (found == each.inputs.end()) continue;
      const auto here = static_cast<int>(found - each.inputs.begin());
      if (place >= 0 && here != place) {
        fail(operand.place, "operand " + in_quotes(operand.text) +
                                " stands at different places in the alternatives");
      }
      place = here;
    }
    if (place < 0) {
      fail(operand.place, "the notation has no operand " + in_quotes(operand.text));
    }
    constexpr int kMost = 31;  // one bit each
    if (place > kMost) fail(operand.place, "is beyond the first 32 operands");
    return place;
  }

  /// The variance is the operand behind the mean.
  void check_statistics(const notation::Line& line, const Norm& norm) const {
    for (const notation::Alternative& each : line.alternatives) {
      if (std::cmp_greater_equal(norm.statistics + 1, each.inputs.size())) {
        fail(header_.place, "the operand behind the statistics must be the variance");
      }
    }
  }

  const std::string& file_name_;
  std::vector<OperatorRule> rules_;
  // The operator that is being read:
  Token header_;
  NotationText notation_;
  std::set<std::string, std::less<>> seen_;
  std::vector<Reference> references_;
};

}  // namespace
}  // namespace parsimony::rules

namespace parsimony {

OpSchema OperatorRule::row() const {
  OpSchema row = schema;
  row.domain = domain;
  row.op = op;
  row.line = line;
  row.linear.layer = layer;
  row.scale = scale;
  row.integers.bits = bits;
  row.data.bits = bits_of_data;
  return row;
}

std::vector<OperatorRule> parse_rules(std::string_view text, const std::string& file_name) {
  return rules::RulesReader(file_name).read(text);
}

void add_rules(const std::string& path) {
  for (const OperatorRule& rule : parse_rules(read_file(path), path)) add_operator(rule.row());
}

}  // namespace parsimony
