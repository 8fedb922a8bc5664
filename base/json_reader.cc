#include "parsimony/base/json_reader.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

namespace parsimony {
namespace {

constexpr size_t kDeepest = 100;   // writing values is recursive
constexpr size_t kMostShown = 40;  // characters of a wrong value in a message

std::string text_of(double value) {
  std::array<char, 32> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), end};
}

/// The parser's message without its location.
std::string reason_of(std::string_view what) {
  const size_t prefix = what.find("] ");  // "[json.exception.parse_error.101] "
  if (prefix != std::string_view::npos) what.remove_prefix(prefix + 2);
  const size_t colon = what.starts_with("parse error") ? what.find(": ") : std::string_view::npos;
  if (colon != std::string_view::npos) what.remove_prefix(colon + 2);
  return std::string(what);
}

/// "3:7": line and column at which the parser stopped.
std::string position_in(std::string_view text, size_t byte, bool is_line) {
  if (is_line) return std::to_string(byte);
  const std::string_view before = text.substr(0, byte > 0 ? byte - 1 : 0);
  const size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return std::to_string(std::count(before.begin(), before.end(), '\n') + 1) + ':' +
         std::to_string(before.size() - line_start + 1);
}

}  // namespace

bool Interval::contains(double value) const {
  return (with_lowest ? value >= lowest : value > lowest) &&
         (with_highest ? value <= highest : value < highest);
}

std::string Interval::text() const {
  std::string text = std::isinf(lowest) ? "(-∞" : (with_lowest ? "[" : "(") + text_of(lowest);
  text += ", ";
  return text + (std::isinf(highest) ? "∞)" : text_of(highest) + (with_highest ? "]" : ")"));
}

/// Fills a document from the parser's events.
class JsonBuilder {
 public:
  using Type = JsonDocument::Type;
  using Parser = nlohmann::json;

  JsonBuilder(JsonDocument& document, std::string_view source, bool is_line)
      : document_(document), source_(source), is_line_(is_line) {}

  // The interface of nlohmann::json::sax_parse.
  bool null() { return add(Type::kNull, 0); }
  bool boolean(bool value) { return add(Type::kFlag, value ? 1 : 0); }
  bool number_integer(int64_t value) {
    return add(Type::kNegative, std::bit_cast<uint64_t>(value));
  }
  bool number_unsigned(uint64_t value) { return add(Type::kUnsigned, value); }
  bool number_float(double value, const std::string&) {
    return add(Type::kFloat, std::bit_cast<uint64_t>(value));
  }
  bool string(std::string& value) {
    count();
    return add_text(value);
  }
  bool binary(std::vector<uint8_t>&) { return false; }
  bool start_object(size_t) { return open(Type::kObject); }
  bool start_array(size_t) { return open(Type::kList); }
  bool key(std::string& value) { return add_text(value); }
  bool end_array() {
    document_.nodes_[open_.back()].bits = document_.nodes_.size();
    open_.pop_back();
    return true;
  }
  bool end_object() {
    refuse_duplicates();
    return end_array();
  }
  bool parse_error(size_t byte, const std::string&, const std::exception& error) {
    document_.fault_(document_.file_name_ + ':' + position_in(source_, byte, is_line_) +
                     ": not JSON: " + reason_of(error.what()));
    return false;
  }

 private:
  void count() {
    if (!open_.empty()) ++document_.nodes_[open_.back()].size;
  }
  bool add(Type type, uint64_t bits) {
    count();
    document_.nodes_.push_back({bits, 0, type});
    return true;
  }
  bool add_text(const std::string& value) {
    const auto size = static_cast<uint32_t>(value.size());
    document_.nodes_.push_back({document_.texts_.size(), size, Type::kText});
    document_.texts_ += value;
    return true;
  }
  bool open(Type type) {
    if (open_.size() == kDeepest) {
      document_.fault_(document_.file_name_ + ": is nested too deeply");
    }
    add(type, 0);
    open_.push_back(document_.nodes_.size() - 1);
    return true;
  }
  void refuse_duplicates() {
    document_.nodes_[open_.back()].bits = document_.nodes_.size();
    const JsonReader object(document_, open_.back());
    if (object.node().size < 2) return;
    std::vector<std::string_view> keys;
    for (const JsonReader member : object.members()) keys.push_back(member.own_key());
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice == keys.end()) return;
    for (const size_t node : open_) document_.nodes_[node].bits = document_.nodes_.size();
    object.fail("key \"" + std::string(*twice) + "\" occurs twice in one object");
  }

  JsonDocument& document_;
  std::string_view source_;
  bool is_line_;
  std::vector<size_t> open_;
};

JsonDocument::JsonDocument(std::string_view text, std::string_view file_name, JsonFault fault,
                           bool is_line, std::string_view list_name)
    : file_name_(file_name), list_name_(list_name), fault_(fault) {
  if (text.size() > std::numeric_limits<uint32_t>::max()) {
    fault_(file_name_ + ": is larger than 4 GiB");
  }
  JsonBuilder builder(*this, text, is_line);
  nlohmann::json::sax_parse(text, &builder);
}

JsonReader JsonDocument::root() const { return {*this, 0}; }

JsonReader::Iterator& JsonReader::Iterator::operator++() {
  node_ = JsonReader(*document_, node_).after() + key_;
  return *this;
}

size_t JsonReader::after() const {
  return is_list() || is_object() ? static_cast<size_t>(node().bits) : node_ + 1;
}

JsonReader::Items JsonReader::items(size_t key) const {
  Iterator first;
  first.document_ = document_;
  first.node_ = node_ + 1 + key;
  first.key_ = key;
  Iterator last = first;
  last.node_ = after() + key;
  return {first, last};
}

size_t JsonReader::size() const {
  if (!is_list() && !is_object()) expected("a list");
  return node().size;
}

JsonReader::Items JsonReader::list() const {
  if (!is_list()) expected("a list");
  return items(0);
}

JsonReader::Items JsonReader::members() const {
  if (!is_object()) expected("an object");
  return items(1);
}

std::string_view JsonReader::characters() const {
  return std::string_view(document_->texts_).substr(static_cast<size_t>(node().bits), node().size);
}

std::string_view JsonReader::own_key() const {
  return JsonReader(*document_, node_ - 1).characters();
}

std::optional<JsonReader> JsonReader::find(std::string_view key) const {
  for (const JsonReader member : members()) {
    if (member.own_key() != key) continue;
    if (skips_nulls_ && member.is_null()) break;
    return member;
  }
  return std::nullopt;
}

JsonReader JsonReader::at(std::string_view key) const {
  const auto found = find(key);
  if (!found) fail("lacks \"" + std::string(key) + "\"");
  return *found;
}

JsonReader JsonReader::without_nulls() const {
  JsonReader same = *this;
  same.skips_nulls_ = true;
  return same;
}

void JsonReader::only(std::span<const std::string_view> keys) const {
  for (const JsonReader member : members()) {
    const std::string_view key = member.own_key();
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    const std::vector<std::string> known(keys.begin(), keys.end());
    fail("unknown key \"" + std::string(key) + "\"." + did_you_mean(key, known));
  }
}

bool JsonReader::flag() const {
  if (type() != Type::kFlag) expected("true or false");
  return node().bits != 0;
}

std::string JsonReader::text() const {
  if (!is_text()) expected("a string");
  return std::string(characters());
}

std::string JsonReader::name() const {
  if (!is_text() || node().size == 0) expected("a name");
  return std::string(characters());
}

size_t JsonReader::word(std::span<const std::string_view> words) const {
  const auto found = std::find(words.begin(), words.end(), is_text() ? characters() : "");
  if (found == words.end()) expected(one_of(words));
  return static_cast<size_t>(found - words.begin());
}

double JsonReader::number(const Interval& interval) const {
  const uint64_t bits = node().bits;
  const double value = type() == Type::kFloat ? std::bit_cast<double>(bits)
                       : type() == Type::kUnsigned
                           ? static_cast<double>(bits)
                           : static_cast<double>(static_cast<int64_t>(bits));
  if (is_number() && interval.contains(value)) return value;
  const bool any = std::isinf(interval.lowest) && std::isinf(interval.highest);
  expected(any ? "a number" : "a number in " + interval.text());
}

int64_t JsonReader::integer(int64_t lowest, int64_t highest) const {
  const auto value = static_cast<int64_t>(node().bits);
  const bool fits = type() == Type::kNegative || (type() == Type::kUnsigned && value >= 0);
  if (!fits || value < lowest || value > highest) {
    if (lowest == 0 && highest == std::numeric_limits<int64_t>::max()) expected("a count");
    expected("an integer from " + std::to_string(lowest) + " to " + std::to_string(highest));
  }
  return value;
}

uint64_t JsonReader::unsigned_integer() const {
  if (type() != Type::kUnsigned) expected("an integer from 0");
  return node().bits;
}

void JsonReader::write(std::string& to, JsonOrder order,
                       std::span<const std::string_view> without) const {
  if (!is_list() && !is_object()) {
    to += json();
    return;
  }
  std::vector<JsonReader> values;
  for (const JsonReader value : items(is_object() ? 1 : 0)) {
    if (is_list() || std::find(without.begin(), without.end(), value.own_key()) == without.end()) {
      values.push_back(value);
    }
  }
  if (is_object() && order == JsonOrder::kSorted) {
    std::sort(values.begin(), values.end(),
              [](const JsonReader& a, const JsonReader& b) { return a.own_key() < b.own_key(); });
  }
  to += is_list() ? '[' : '{';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) to += ',';
    if (is_object()) to.append(json_text(values[i].own_key())).append(":");
    values[i].write(to, order, {});
  }
  to += is_list() ? ']' : '}';
}

std::string JsonReader::json(JsonOrder order, std::span<const std::string_view> without) const {
  std::string text;
  switch (type()) {
    case Type::kNull:
      return "null";
    case Type::kFlag:
      return flag() ? "true" : "false";
    case Type::kUnsigned:
      return std::to_string(node().bits);
    case Type::kNegative:
      return std::to_string(static_cast<int64_t>(node().bits));
    case Type::kFloat:
      return json_text(std::bit_cast<double>(node().bits));
    case Type::kText:
      return json_text(characters());
    case Type::kList:
    case Type::kObject:
      write(text, order, without);
  }
  return text;
}

std::string JsonReader::place() const {
  JsonReader at(*document_, 0);
  std::string path = at.is_list() ? document_->list_name_ : std::string();
  while (at.node_ != node_) {
    size_t index = 0;
    for (const JsonReader value : at.items(at.is_object() ? 1 : 0)) {
      if (node_ < value.after()) {
        if (at.is_list()) {
          path += '[' + std::to_string(index) + ']';
        } else {
          path.append(path.empty() ? "" : ".").append(value.own_key());
        }
        at = value;
        break;
      }
      ++index;
    }
  }
  return document_->file_name_ + (path.empty() ? "" : ": " + path);
}

void JsonReader::expected(std::string_view what) const {
  // Only scalar values are shown, since lists may be long.
  std::string found = is_list() ? "a list" : is_object() ? "an object" : json();
  if (found.size() > kMostShown) {
    size_t end = kMostShown;
    while ((static_cast<unsigned char>(found[end]) & 0xc0) == 0x80) --end;  // within a character
    found = found.substr(0, end) + "…";
  }
  fail("found " + found + ", expected " + std::string(what));
}

void JsonReader::fail(std::string_view what) const {
  document_->fault_(place() + ": " + std::string(what));
  std::abort();  // a fault always throws
}

bool is_json(std::string_view text) { return nlohmann::json::accept(text); }

std::string json_text(std::string_view text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    throw ModelError("a name is not UTF-8");
  }
}

std::string json_text(double value) { return nlohmann::json(value).dump(); }

}  // namespace parsimony
