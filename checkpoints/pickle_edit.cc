#include <algorithm>

#include "parsimony/base/errors.h"
#include "parsimony/checkpoints/pickle.h"
#include "parsimony/checkpoints/pickle_opcodes_impl.h"

namespace parsimony::pickle {
namespace {

bool is_inside(const Span& span, const Span& other) {
  return span.begin >= other.begin && span.end <= other.end;
}

}  // namespace

void PickleEdit::set(const Part& integer, int64_t value) {
  if (pickle_.integer_of(integer) != value) changes_.push_back({integer.span, code_of(value)});
}

void PickleEdit::set(const Part& tuple, std::span<const int64_t> values) {
  if (is_fetched(tuple)) {
    fetched_.push_back({tuple, {values.begin(), values.end()}});
    return;
  }
  const std::vector<Part>& parts = pickle_[tuple].parts;
  for (size_t i = 0; i < parts.size(); ++i) set(parts[i], values[i]);
  rebuilt_[tuple.object] = {values.begin(), values.end()};
}

void PickleEdit::remove(const Part& key, const Part& value) {
  const size_t end = value.span.end;
  const bool alone = pickle_.bytes_[end] == kSetItem;
  replace({key.span.begin, end + (alone ? 1 : 0)}, "");
}

void PickleEdit::rename(const Part& key, std::string_view name) {
  std::string code(1, kBinUnicode);
  for (size_t i = 0; i < 4; ++i) code += static_cast<char>(name.size() >> (8 * i) & 0xff);
  replace(key.span, code.append(name));
}

void PickleEdit::replace(const Span& span, std::string code) {
  replaced_.push_back(span);
  changes_.push_back({span, std::move(code)});
}

bool PickleEdit::is_replaced(const Span& span) const {
  return std::ranges::any_of(replaced_, [&](const Span& other) { return is_inside(span, other); });
}

namespace {

/// Is an object complete once it is in the memo? Containers are filled afterwards, and objects
/// given a state.
bool is_complete(const Object& object) {
  switch (object.kind) {
    case Kind::kText:
    case Kind::kBytes:
    case Kind::kGlobal:
    case Kind::kTuple:
      return true;
    case Kind::kCall:
      return object.parts.size() == 2 && object.elements == ObjectId() &&
             object.items == ObjectId();
    default:
      return false;
  }
}

}  // namespace

/// Where what was built in a replaced part is fetched first, it is built: by the same code, in
/// which the same holds.
void PickleEdit::build_what_is_lost(std::vector<Change>& changes) const {
  absl::flat_hash_map<ObjectId, Span> lost;
  for (const auto& [object, span] : pickle_.built_) {
    if (is_replaced(span)) lost.emplace(object, span);
  }
  if (lost.empty()) return;
  const auto code_of_lost = [&](const auto& self, ObjectId object) -> std::string {
    const Span span = lost.at(object);
    if (!is_complete(pickle_[object]) || pickle_.protocol_ >= 4) {
      throw UnsupportedError(
          "a pickle shares an object between an entry that is removed and others");
    }
    absl::erase_if(lost, [&](const auto& other) { return is_inside(other.second, span); });
    std::string code;
    size_t at = span.begin;
    for (const Part& fetch : pickle_.fetched_) {
      if (!is_inside(fetch.span, span) || !lost.contains(fetch.object)) continue;
      code += pickle_.bytes_.substr(at, fetch.span.begin - at);
      code += self(self, fetch.object);
      at = fetch.span.end;
    }
    return code.append(pickle_.bytes_.substr(at, span.end - at));
  };
  const std::vector<Change> edits = changes;
  for (const Part& fetch : pickle_.fetched_) {
    if (!lost.contains(fetch.object)) continue;
    const bool is_changed = std::ranges::any_of(
        edits, [&](const Change& change) { return is_inside(fetch.span, change.span); });
    if (!is_changed) {
      changes.push_back({fetch.span, code_of_lost(code_of_lost, fetch.object)});
    }
  }
}

bool PickleEdit::is_fetched(const Part& part) const {
  const auto op = static_cast<unsigned char>(pickle_.bytes_[part.span.begin]);
  return op == kGet || op == kBinGet || op == kLongBinGet || op == kDup;
}

std::vector<int64_t> PickleEdit::values_of(const Part& tuple) const {
  std::vector<int64_t> values;
  for (const Part& part : pickle_[tuple].parts) values.push_back(pickle_[part].integer);
  return values;
}

std::string PickleEdit::code_of(int64_t value) const {
  const auto number = [value](char op, size_t bytes) {
    std::string code(1, op);
    for (size_t i = 0; i < bytes; ++i) code += static_cast<char>(value >> (8 * i) & 0xff);
    return code;
  };
  if (pickle_.protocol_ == 0) return "I" + std::to_string(value) + "\n";
  if (value >= 0 && value < 0x100) return number(kBinInt1, 1);
  if (value >= 0 && value < 0x10000) return number(kBinInt2, 2);
  if (value == static_cast<int32_t>(value)) return number(kBinInt, 4);
  if (pickle_.protocol_ == 1) return "L" + std::to_string(value) + "L\n";
  size_t bytes = 5;
  while (bytes < 8 && value >> (8 * bytes - 1) != 0 && value >> (8 * bytes - 1) != -1) ++bytes;
  std::string code = number(static_cast<char>(bytes), bytes);
  return static_cast<char>(kLong1) + code;
}

std::string PickleEdit::code_of(std::span<const int64_t> values) const {
  std::string code;
  for (const int64_t value : values) code += code_of(value);
  if (values.empty()) return {kEmptyTuple};
  if (values.size() <= 3 && pickle_.protocol_ >= 2) {
    return code + static_cast<char>(kTuple1 + values.size() - 1);
  }
  return static_cast<char>(kMark) + code + static_cast<char>(kTupleOfMark);
}

std::string PickleEdit::bytes() const {
  std::vector<Change> changes = changes_;
  for (const Wish& wish : fetched_) {
    const auto rebuilt = rebuilt_.find(wish.part.object);
    const bool fits = rebuilt == rebuilt_.end() ? values_of(wish.part) == wish.values
                                                : rebuilt->second == wish.values;
    if (!fits) changes.push_back({wish.part.span, code_of(wish.values)});
  }
  build_what_is_lost(changes);
  const auto grown = [](const Change& change) {
    return static_cast<int64_t>(change.bytes.size()) -
           static_cast<int64_t>(change.span.end - change.span.begin);
  };
  const size_t edits = changes.size();
  for (const Span& frame : pickle_.frames_) {
    auto length = static_cast<int64_t>(frame.end - frame.begin);
    for (size_t i = 0; i < edits; ++i) {
      const size_t at = changes[i].span.begin;
      if (at >= frame.begin && at < frame.end) length += grown(changes[i]);
    }
    std::string code;
    for (size_t i = 0; i < kFrameLength; ++i) code += static_cast<char>(length >> (8 * i) & 0xff);
    changes.push_back({{frame.begin - kFrameLength, frame.begin}, std::move(code)});
  }
  std::ranges::sort(changes, {}, [](const Change& change) { return change.span.begin; });
  std::string bytes;
  size_t at = 0;
  for (const Change& change : changes) {
    if (change.span.begin < at) continue;  // the same part, set twice
    bytes += pickle_.bytes_.substr(at, change.span.begin - at);
    bytes += change.bytes;
    at = change.span.end;
  }
  return bytes.append(pickle_.bytes_.substr(at));
}

}  // namespace parsimony::pickle
