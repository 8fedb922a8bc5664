// Pickles as data. A pickle is a program for a small stack machine that can import and call
// anything; here nothing is imported and nothing is called: what the program would build is
// described, and a changed pickle is the old one with other constants in it, so that everything
// that nobody changed stays as it was, byte for byte.
//
// @source Lib/pickletools.py of CPython: protocols 0 to 5
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parsimony/base/ids.h"

namespace parsimony::pickle {

using ObjectId = Id<struct ObjectTag>;

enum class Kind : uint8_t {
  kNone,
  kBool,
  kInteger,
  kLong,  ///< an integer of more than 64 bits: `text` are its bytes, little-endian
  kFloat,
  kText,
  kBytes,
  kList,
  kTuple,
  kDict,
  kSet,
  kGlobal,      ///< `text`: "torch._utils._rebuild_tensor_v2"
  kCall,        ///< parts: what is called, its arguments, then each state that it is given
  kPersistent,  ///< parts: the id, as which torch.save writes storages
};

/// The bytes of the pickle that build an object or, if it was built before, fetch it.
struct Span {
  size_t begin = 0;
  size_t end = 0;
};

struct Part {
  ObjectId object;
  Span span;
};

struct Object {
  Kind kind = Kind::kNone;
  ObjectId elements = {};  ///< of a call: the list of what was appended to its result; often kNone
  ObjectId items = {};     ///< of a call: the dictionary of what was set in its result; often kNone
  int64_t integer = 0;     ///< of a bool too
  double number = 0;
  std::string_view text = {};
  std::vector<Part> parts = {};  ///< elements; for a dictionary keys and values in turn
};

/// The objects that one pickle builds. Refers to the pickle's bytes.
class Pickle {
 public:
  /// Reads from the start of `bytes` to the pickle's end. `what` names it in messages.
  /// @throws ModelError, naming the byte, for whatever is not a pickle
  Pickle(std::string_view bytes, std::string what);
  Pickle(const Pickle&) = delete;  // views
  Pickle& operator=(const Pickle&) = delete;
  Pickle(Pickle&&) = default;

  const Object& operator[](ObjectId id) const { return objects_[id]; }
  const Object& operator[](const Part& part) const { return objects_[part.object]; }
  const IdVector<ObjectId, Object>& objects() const { return objects_; }
  const Part& root() const { return root_; }
  std::string_view bytes() const { return bytes_; }  ///< of this pickle alone
  int protocol() const { return protocol_; }

  /// Keys and values of a dictionary or of an object like it.
  std::span<const Part> items_of(ObjectId id) const;
  /// The value of a text key; null if there is none or `id` is no dictionary.
  const Part* find(ObjectId id, std::string_view key) const;
  std::optional<std::string_view> text_of(const Part& part) const;
  std::optional<int64_t> integer_of(const Part& part) const;
  /// The global that a call calls, or that a part is; empty if there is none.
  std::string_view global_of(ObjectId id) const;

  /// Every global that the pickle names, each once, in order.
  std::vector<std::string_view> globals() const;

 private:
  friend class Machine;
  friend class PickleEdit;

  std::string_view bytes_;
  int protocol_ = 0;
  IdVector<ObjectId, Object> objects_;
  std::deque<std::string> texts_;              ///< those that are not in the pickle as such
  std::vector<Span> frames_;                   ///< contents of the frames of protocol 4
  absl::flat_hash_map<ObjectId, Span> built_;  ///< what builds an object and puts it into the memo
  std::vector<Part> fetched_;                  ///< instructions that fetch one, in order
  Part root_;
};

/// New values for integers and tuples of integers of one pickle, and dictionaries with fewer
/// entries or other keys. Parts may share an object: say the value of each part that refers to one
/// that changes, and each will have its own.
///
///     PickleEdit edit(pickle);
///     edit.set(sizes, {8, 16, 3, 3});
///     edit.remove(key, value);
///     std::string changed = edit.bytes();
class PickleEdit {
 public:
  explicit PickleEdit(const Pickle& pickle) : pickle_(pickle) {}

  void set(const Part& integer, int64_t value);
  void set(const Part& tuple, std::span<const int64_t> values);

  /// Removes an entry of a dictionary. What it builds and others fetch is built by these.
  void remove(const Part& key, const Part& value);
  void rename(const Part& key, std::string_view name);

  /// @throws UnsupportedError if others fetch a container, or anything in protocol 4 or later, that
  /// a removed entry builds
  std::string bytes() const;

 private:
  struct Change {
    Span span;
    std::string bytes;
  };
  struct Wish {
    Part part;
    std::vector<int64_t> values;
  };
  std::string code_of(int64_t value) const;
  std::string code_of(std::span<const int64_t> values) const;
  std::vector<int64_t> values_of(const Part& tuple) const;
  bool is_fetched(const Part& part) const;
  void replace(const Span& span, std::string code);
  bool is_replaced(const Span& span) const;
  void build_what_is_lost(std::vector<Change>& changes) const;

  const Pickle& pickle_;
  std::vector<Span> replaced_;  ///< with all that they build
  std::vector<Change> changes_;
  absl::flat_hash_map<ObjectId, std::vector<int64_t>> rebuilt_;
  std::vector<Wish> fetched_;
};

}  // namespace parsimony::pickle
