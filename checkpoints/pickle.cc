#include "parsimony/checkpoints/pickle.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>

#include "parsimony/base/ranges.h"
#include "parsimony/checkpoints/errors.h"
#include "parsimony/checkpoints/pickle_opcodes_impl.h"

namespace parsimony::pickle {
namespace {

constexpr int kHighestProtocol = 5;
/// A little-endian number of `bytes`, of at most 8.
int64_t signed_number(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  const auto unused = static_cast<int>(64 - 8 * bytes.size());
  return bytes.empty() ? 0 : static_cast<int64_t>(value << unused) >> unused;
}

void append_utf8(std::string& to, uint32_t point) {
  if (point < 0x80) {
    to += static_cast<char>(point);
  } else if (point < 0x800) {
    to += static_cast<char>(0xc0 | point >> 6);
    to += static_cast<char>(0x80 | (point & 0x3f));
  } else if (point < 0x10000) {
    to += static_cast<char>(0xe0 | point >> 12);
    to += static_cast<char>(0x80 | (point >> 6 & 0x3f));
    to += static_cast<char>(0x80 | (point & 0x3f));
  } else {
    to += static_cast<char>(0xf0 | point >> 18);
    to += static_cast<char>(0x80 | (point >> 12 & 0x3f));
    to += static_cast<char>(0x80 | (point >> 6 & 0x3f));
    to += static_cast<char>(0x80 | (point & 0x3f));
  }
}

/// A text of protocol 0 without its escapes, of which those with numbers are all that matter.
std::string unescaped(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const char kind = text[i] == '\\' && i + 1 < text.size() ? text[i + 1] : '\0';
    const size_t digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
    uint32_t point = 0;
    const std::string_view number = text.substr(std::min(i + 2, text.size()), digits);
    if (digits > 0 &&
        std::from_chars(number.begin(), number.end(), point, 16).ptr == number.begin() + digits) {
      append_utf8(plain, point);
      i += 1 + digits;
    } else if (kind == '\\' || kind == '\'' || kind == '"') {
      plain += text[++i];
    } else {
      plain += text[i];
    }
  }
  return plain;
}

}  // namespace

/// Follows the program, and notes what it builds.
class Machine {
 public:
  Machine(Pickle& pickle, const std::string& what) : pickle_(pickle), what_(what) {
    for (const Kind kind : {Kind::kNone, Kind::kBool, Kind::kBool}) add({.kind = kind});
    pickle_.objects_[kTrue].integer = 1;
  }

  void run() {
    while (true) {
      begin_ = at_;
      const auto op = static_cast<unsigned char>(take(1).front());
      if (op == kStop) break;
      step(op);
    }
    pickle_.root_ = pop();
    pickle_.bytes_ = pickle_.bytes_.substr(0, at_);
  }

 private:
  static constexpr ObjectId kNoneObject{0};
  static constexpr ObjectId kTrue{1};
  static constexpr ObjectId kFalse{2};

  [[noreturn]] void fail(const std::string& why) const {
    throw errors::bad_pickle(what_, begin_, why);
  }

  std::string_view take(uint64_t count) {
    const std::string_view bytes = pickle_.bytes_;
    if (count > bytes.size() - at_) {
      begin_ = std::min(begin_, at_);
      fail("the pickle ends in the middle of an instruction");
    }
    const std::string_view taken = bytes.substr(at_, count);
    at_ += count;
    return taken;
  }

  uint64_t take_number(size_t bytes) {
    uint64_t value = 0;
    const std::string_view taken = take(bytes);
    for (size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<uint8_t>(taken[i]);
    return value;
  }

  std::string_view take_sized(size_t bytes) { return take(take_number(bytes)); }

  std::string_view take_line() {
    const size_t end = pickle_.bytes_.find('\n', at_);
    if (end == std::string_view::npos) fail("a line has no end");
    const std::string_view line = pickle_.bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return line;
  }

  template <typename T>
  T number_in(std::string_view text) const {
    T value{};
    const auto [end, error] = std::from_chars(text.begin(), text.end(), value);
    if (error != std::errc() || end != text.end())
      fail("\"" + std::string(text) + "\" is no number");
    return value;
  }

  ObjectId add(Object object) {
    const ObjectId id = pickle_.objects_.next_id();
    if (pickle_.objects_.size() == std::numeric_limits<int32_t>::max()) fail("too many objects");
    pickle_.objects_.push_back(std::move(object));
    return id;
  }

  Object& object(const Part& part) { return pickle_.objects_[part.object]; }

  std::string_view keep(std::string text) { return pickle_.texts_.emplace_back(std::move(text)); }

  void push(ObjectId id, size_t begin) { stack_.push_back({id, {begin, at_}}); }
  void push(Object object) { push(add(std::move(object)), begin_); }
  void push_text(Kind kind, std::string_view text) { push({.kind = kind, .text = text}); }
  void push_integer(int64_t value) { push({.kind = Kind::kInteger, .integer = value}); }

  void push_long(std::string_view bytes) {
    if (bytes.size() > 8) return push_text(Kind::kLong, bytes);
    push_integer(signed_number(bytes));
  }

  Part pop() {
    if (stack_.size() <= floor()) fail("the stack is empty");
    const Part part = stack_.back();
    stack_.pop_back();
    return part;
  }

  Part& top() {
    if (stack_.size() <= floor()) fail("the stack is empty");
    return stack_.back();
  }

  size_t floor() const { return marks_.empty() ? 0 : marks_.back().first; }

  struct Marked {
    size_t begin = 0;
    std::vector<Part> parts;
  };

  Marked pop_mark() {
    if (marks_.empty()) fail("there is no mark on the stack");
    const auto [depth, begin] = marks_.back();
    marks_.pop_back();
    Marked marked{begin, {stack_.begin() + static_cast<std::ptrdiff_t>(depth), stack_.end()}};
    stack_.resize(depth);
    return marked;
  }

  void push_of_mark(Kind kind) {
    Marked marked = pop_mark();
    if (kind == Kind::kDict && marked.parts.size() % 2 != 0) fail("a key has no value");
    push(add({.kind = kind, .parts = std::move(marked.parts)}), marked.begin);
  }

  void push_tuple(size_t count) {
    std::vector<Part> parts(count);
    for (size_t i = count; i-- > 0;) parts[i] = pop();
    const size_t begin = parts.front().span.begin;
    push(add({.kind = Kind::kTuple, .parts = std::move(parts)}), begin);
  }

  void push_global(std::string_view module, std::string_view name) {
    push_text(Kind::kGlobal, keep(std::string(module) + "." + std::string(name)));
  }

  void push_extension(size_t bytes) {
    push_text(Kind::kGlobal, keep("copyreg extension " + std::to_string(take_number(bytes))));
  }

  void push_call(std::vector<Part> parts, size_t begin) {
    push(add({.kind = Kind::kCall, .parts = std::move(parts)}), begin);
  }

  void call(size_t operands) {
    std::vector<Part> parts(operands);
    for (size_t i = operands; i-- > 0;) parts[i] = pop();
    const size_t begin = parts.front().span.begin;
    push_call(std::move(parts), begin);
  }

  /// The list, set or dictionary that the top is, or that a call gets beside its arguments.
  Object& container(Kind kind) {
    const ObjectId id = top().object;
    const Kind found = pickle_.objects_[id].kind;
    if (found == Kind::kCall) {
      const bool is_dict = kind == Kind::kDict;
      const auto side = is_dict ? &Object::items : &Object::elements;
      if (pickle_.objects_[id].*side == ObjectId()) {
        const ObjectId added = add({.kind = kind});
        pickle_.objects_[id].*side = added;
      }
      return pickle_.objects_[pickle_.objects_[id].*side];
    }
    const bool fits = found == kind || (kind == Kind::kList && found == Kind::kSet);
    if (!fits) fail("elements are added to what takes none");
    return pickle_.objects_[id];
  }

  void extend(Kind kind, const std::vector<Part>& parts) {
    if (kind == Kind::kDict && parts.size() % 2 != 0) fail("a key has no value");
    Object& target = container(kind);
    target.parts.insert(target.parts.end(), parts.begin(), parts.end());
    top().span.end = at_;
  }

  void extend_by(Kind kind, size_t count) {
    std::vector<Part> parts(count);
    for (size_t i = count; i-- > 0;) parts[i] = pop();
    extend(kind, parts);
  }

  void put(uint64_t slot) {
    top().span.end = at_;
    memo_[slot] = top().object;
    pickle_.built_[top().object] = top().span;
  }

  void get(uint64_t slot) {
    const auto found = memo_.find(slot);
    if (found == memo_.end()) fail("memo " + std::to_string(slot) + " is not set");
    push(found->second, begin_);
    pickle_.fetched_.push_back(top());
  }

  void build() {
    const Part state = pop();
    Object& target = object(top());
    if (target.kind != Kind::kCall) fail("a state is given to what has none");
    target.parts.push_back(state);
    top().span.end = at_;
  }

  void frame() {
    const uint64_t length = take_number(kFrameLength);
    if (length > pickle_.bytes_.size() - at_) fail("a frame reaches beyond the end");
    pickle_.frames_.push_back({at_, at_ + length});
  }

  void step_text(unsigned char op);
  void step(unsigned char op);

  Pickle& pickle_;
  const std::string& what_;
  size_t at_ = 0;
  size_t begin_ = 0;  ///< of the current instruction
  std::vector<Part> stack_;
  std::vector<std::pair<size_t, size_t>> marks_;  ///< size of the stack, place in the pickle
  absl::flat_hash_map<uint64_t, ObjectId> memo_;
};

/// Instructions whose operand is a line, as in protocol 0.
void Machine::step_text(unsigned char op) {
  const std::string_view line = take_line();
  switch (op) {
    case kIntText:
      if (line == "00" || line == "01") return push(line == "01" ? kTrue : kFalse, begin_);
      return push_integer(number_in<int64_t>(line));
    case kLongText: {
      const std::string_view digits = line.substr(0, line.size() - (line.ends_with('L') ? 1 : 0));
      int64_t value = 0;
      const auto parsed = std::from_chars(digits.begin(), digits.end(), value);
      if (parsed.ec == std::errc::result_out_of_range) return push_text(Kind::kLong, digits);
      return push_integer(number_in<int64_t>(digits));
    }
    case kFloatText:
      return push({.kind = Kind::kFloat, .number = number_in<double>(line)});
    case kString:
      if (line.size() < 2) fail("a text has no quotes");
      return push_text(Kind::kText, keep(unescaped(line.substr(1, line.size() - 2))));
    case kUnicode:
      return push_text(Kind::kText, keep(unescaped(line)));
    case kPersId:
      return push_text(Kind::kPersistent, line);
    case kGlobalText:
      return push_global(line, take_line());
    case kInst: {
      const std::string_view name = take_line();
      Marked marked = pop_mark();
      const Span span{begin_, at_};
      const ObjectId called =
          add({.kind = Kind::kGlobal, .text = keep(std::string(line) + "." + std::string(name))});
      const ObjectId arguments = add({.kind = Kind::kTuple, .parts = std::move(marked.parts)});
      return push_call({{called, span}, {arguments, span}}, marked.begin);
    }
    case kGet:
      return get(number_in<uint64_t>(line));
    default:
      return put(number_in<uint64_t>(line));
  }
}

void Machine::step(unsigned char op) {
  switch (op) {
    case kMark:
      marks_.emplace_back(stack_.size(), begin_);
      return;
    case kPop:
      if (!marks_.empty() && stack_.size() == floor()) return static_cast<void>(pop_mark());
      return static_cast<void>(pop());
    case kPopMark:
      return static_cast<void>(pop_mark());
    case kDup:
      return push(top().object, begin_);
    case kIntText:
    case kLongText:
    case kFloatText:
    case kString:
    case kUnicode:
    case kPersId:
    case kGlobalText:
    case kInst:
    case kGet:
    case kPut:
      return step_text(op);
    case kBinInt:
      return push_integer(signed_number(take(4)));
    case kBinInt1:
      return push_integer(static_cast<int64_t>(take_number(1)));
    case kBinInt2:
      return push_integer(static_cast<int64_t>(take_number(2)));
    case kLong1:
      return push_long(take_sized(1));
    case kLong4:
      return push_long(take_sized(4));
    case kNothing:
      return push(kNoneObject, begin_);
    case kNewTrue:
      return push(kTrue, begin_);
    case kNewFalse:
      return push(kFalse, begin_);
    case kBinFloat: {
      const std::string_view bytes = take(8);  // big-endian
      uint64_t bits = 0;
      for (const char byte : bytes) bits = bits << 8 | static_cast<uint8_t>(byte);
      return push({.kind = Kind::kFloat, .number = std::bit_cast<double>(bits)});
    }
    case kBinString:
    case kBinUnicode:
      return push_text(Kind::kText, take_sized(4));
    case kShortBinString:
    case kShortBinUnicode:
      return push_text(Kind::kText, take_sized(1));
    case kBinUnicode8:
      return push_text(Kind::kText, take_sized(8));
    case kBinBytes:
      return push_text(Kind::kBytes, take_sized(4));
    case kShortBinBytes:
      return push_text(Kind::kBytes, take_sized(1));
    case kBinBytes8:
    case kByteArray8:
      return push_text(Kind::kBytes, take_sized(8));
    case kEmptyList:
      return push({.kind = Kind::kList});
    case kEmptyDict:
      return push({.kind = Kind::kDict});
    case kEmptyTuple:
      return push({.kind = Kind::kTuple});
    case kEmptySet:
      return push({.kind = Kind::kSet});
    case kListOfMark:
      return push_of_mark(Kind::kList);
    case kDictOfMark:
      return push_of_mark(Kind::kDict);
    case kTupleOfMark:
      return push_of_mark(Kind::kTuple);
    case kFrozenSet:
      return push_of_mark(Kind::kSet);
    case kTuple1:
    case kTuple2:
    case kTuple3:
      return push_tuple(op - kTuple1 + 1);
    case kAppend:
      return extend_by(Kind::kList, 1);
    case kSetItem:
      return extend_by(Kind::kDict, 2);
    case kAppends:
    case kAddItems:
      return extend(Kind::kList, pop_mark().parts);
    case kSetItems:
      return extend(Kind::kDict, pop_mark().parts);
    case kExt1:
      return push_extension(1);
    case kExt2:
      return push_extension(2);
    case kExt4:
      return push_extension(4);
    case kStackGlobal: {
      const Part name = pop();
      const Part module = pop();
      if (object(name).kind != Kind::kText || object(module).kind != Kind::kText) {
        fail("a global is not named by texts");
      }
      push_global(object(module).text, object(name).text);
      stack_.back().span.begin = module.span.begin;
      return;
    }
    case kReduce:
    case kNewObj:
      return call(2);
    case kNewObjEx:
      return call(3);
    case kObj: {
      Marked marked = pop_mark();
      if (marked.parts.empty()) fail("nothing is called");
      const Part called = marked.parts.front();
      marked.parts.erase(marked.parts.begin());
      const ObjectId arguments = add({.kind = Kind::kTuple, .parts = std::move(marked.parts)});
      return push_call({called, {arguments, {begin_, at_}}}, marked.begin);
    }
    case kBuild:
      return build();
    case kBinPersId: {
      const Part id = pop();
      return push(add({.kind = Kind::kPersistent, .parts = {id}}), id.span.begin);
    }
    case kBinGet:
      return get(take_number(1));
    case kLongBinGet:
      return get(take_number(4));
    case kBinPut:
      return put(take_number(1));
    case kLongBinPut:
      return put(take_number(4));
    case kMemoize:
      return put(memo_.size());
    case kProto:
      pickle_.protocol_ = static_cast<int>(take_number(1));
      if (pickle_.protocol_ > kHighestProtocol) {
        fail("protocol " + std::to_string(pickle_.protocol_) + "; expected at most 5");
      }
      return;
    case kFrame:
      return frame();
    default:
      fail("there is no instruction " + std::to_string(op));
  }
}

Pickle::Pickle(std::string_view bytes, std::string what) : bytes_(bytes) {
  Machine(*this, what).run();
}

std::span<const Part> Pickle::items_of(ObjectId id) const {
  const Object& object = objects_[id];
  if (object.kind == Kind::kDict) return object.parts;
  if (object.kind == Kind::kCall && object.items != ObjectId()) return items_of(object.items);
  return {};
}

const Part* Pickle::find(ObjectId id, std::string_view key) const {
  const std::span<const Part> items = items_of(id);
  for (size_t i = 0; i < items.size(); i += 2) {
    if (text_of(items[i]) == key) return &items[i + 1];
  }
  return nullptr;
}

std::optional<std::string_view> Pickle::text_of(const Part& part) const {
  const Object& object = objects_[part.object];
  if (object.kind != Kind::kText) return std::nullopt;
  return object.text;
}

std::optional<int64_t> Pickle::integer_of(const Part& part) const {
  const Object& object = objects_[part.object];
  if (object.kind != Kind::kInteger) return std::nullopt;
  return object.integer;
}

std::string_view Pickle::global_of(ObjectId id) const {
  const Object& object = objects_[id];
  if (object.kind == Kind::kGlobal) return object.text;
  if (object.kind != Kind::kCall) return {};
  const Object& called = objects_[object.parts.front().object];
  return called.kind == Kind::kGlobal ? called.text : std::string_view();
}

std::vector<std::string_view> Pickle::globals() const {
  std::vector<std::string_view> names;
  for (const Object& object : objects_) {
    if (object.kind == Kind::kGlobal && !contains(names, object.text)) names.push_back(object.text);
  }
  return names;
}

}  // namespace parsimony::pickle
