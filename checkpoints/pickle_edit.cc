#include <algorithm>

#include "parsimony/checkpoints/pickle.h"
#include "parsimony/checkpoints/pickle_opcodes_impl.h"

namespace parsimony::pickle {

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
