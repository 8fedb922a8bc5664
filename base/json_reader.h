// A JSON reader whose values know their location, so that every error names the location, what was
// found and what was expected:
//
//   configs/cnn.json: config_list[2].op_types[0]: found 3, expected a string
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/base/errors.h"

namespace parsimony {

/// Throws the error class of a document: ConfigError for plans, ModelError for weights.
using JsonFault = void (*)(const std::string& text);

template <typename Fault>
[[noreturn]] void throw_as(const std::string& text) {
  throw Fault(text);
}

/// Numbers from `lowest` to `highest`.
struct Interval {
  double lowest = -std::numeric_limits<double>::infinity();
  double highest = std::numeric_limits<double>::infinity();
  bool with_lowest = true;
  bool with_highest = true;

  bool contains(double value) const;
  std::string text() const;  ///< "[0, 1)", "(0, ∞)"
};

inline constexpr Interval kNotNegative{.lowest = 0};
inline constexpr Interval kPositive{.lowest = 0, .with_lowest = false};
inline constexpr Interval kShare{.lowest = 0, .highest = 1};
inline constexpr Interval kBelowOne{.lowest = 0, .highest = 1, .with_highest = false};

enum class JsonOrder : uint8_t { kAsRead, kSorted };

class JsonReader;

/// A parsed text. Duplicate keys and nesting deeper than 100 levels are rejected.
class JsonDocument {
 public:
  /// `file_name` is of a file, or of the one line of it that `text` is; `list_name` is what an
  /// outermost list is called.
  /// @throws what `fault` throws, naming line and column
  JsonDocument(std::string_view text, std::string_view file_name,
               JsonFault fault = throw_as<ConfigError>, bool is_line = false,
               std::string_view list_name = {});
  JsonDocument(const JsonDocument&) = delete;  // readers refer to it
  JsonDocument& operator=(const JsonDocument&) = delete;

  JsonReader root() const;

 private:
  friend class JsonReader;
  friend class JsonBuilder;
  enum class Type : uint8_t { kNull, kFlag, kUnsigned, kNegative, kFloat, kText, kList, kObject };

  /// Values in file order; a member of an object is its key, followed by its value. Children follow
  /// their list or object.
  struct Node {
    uint64_t bits = 0;  ///< of a number; the start of a text; the node after a list or object
    uint32_t size = 0;  ///< characters, elements, members
    Type type = Type::kNull;
  };

  std::vector<Node> nodes_;
  std::string texts_;
  std::string file_name_;
  std::string list_name_;
  JsonFault fault_;
};

/// One value of a document, which must outlive it. Functions report mismatches as errors of the
/// document.
class JsonReader {
 public:
  class Iterator {
   public:
    JsonReader operator*() const { return {*document_, node_}; }
    Iterator& operator++();
    bool operator!=(const Iterator& other) const { return node_ != other.node_; }

   private:
    friend class JsonReader;
    const JsonDocument* document_;
    size_t node_;
    size_t key_;  ///< nodes before each value
  };
  struct Items {
    Iterator first, last;
    Iterator begin() const { return first; }
    Iterator end() const { return last; }
  };

  bool is_null() const { return type() == Type::kNull; }
  bool is_object() const { return type() == Type::kObject; }
  bool is_list() const { return type() == Type::kList; }
  bool is_text() const { return type() == Type::kText; }
  bool is_flag() const { return type() == Type::kFlag; }
  bool is_unsigned() const { return type() == Type::kUnsigned; }
  bool is_integer() const { return type() == Type::kUnsigned || type() == Type::kNegative; }
  bool is_number() const { return is_integer() || type() == Type::kFloat; }

  size_t size() const;               ///< elements of a list, or members of an object
  Items list() const;                ///< elements of a list
  Items members() const;             ///< values of an object, in the order of the file
  std::string_view own_key() const;  ///< of a member
  std::optional<JsonReader> find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key).has_value(); }
  JsonReader at(std::string_view key) const;
  /// Returns a reader of this object that treats null members as absent.
  JsonReader without_nulls() const;
  /// Wants an object that has no other keys than these.
  void only(std::span<const std::string_view> keys) const;
  void only(std::initializer_list<std::string_view> keys) const {
    only(std::span(keys.begin(), keys.size()));
  }
  void only(const std::vector<std::string>& keys) const {
    only(std::vector<std::string_view>(keys.begin(), keys.end()));
  }

  bool flag() const;
  std::string text() const;
  std::string name() const;                                    ///< a non-empty string
  size_t word(std::span<const std::string_view> words) const;  ///< which of them
  double number(const Interval& interval = {}) const;
  int64_t integer(int64_t lowest, int64_t highest) const;
  int small(int lowest, int highest = std::numeric_limits<int>::max()) const {
    return static_cast<int>(integer(lowest, highest));
  }

  int64_t count() const { return integer(0, std::numeric_limits<int64_t>::max()); }
  uint64_t unsigned_integer() const;

  /// The value on one line, without members of these keys.
  std::string json(JsonOrder order = JsonOrder::kAsRead,
                   std::span<const std::string_view> without = {}) const;

  /// "cnn.json: config_list[2].scope"; the file alone for the outermost value.
  std::string place() const;
  [[noreturn]] void expected(std::string_view what) const;
  [[noreturn]] void fail(std::string_view what) const;

 private:
  friend class JsonDocument;
  friend class JsonBuilder;
  using Type = JsonDocument::Type;

  JsonReader(const JsonDocument& document, size_t node) : document_(&document), node_(node) {}
  const JsonDocument::Node& node() const { return document_->nodes_[node_]; }
  Type type() const { return node().type; }
  size_t after() const;
  Items items(size_t key) const;
  std::string_view characters() const;
  void write(std::string& to, JsonOrder order, std::span<const std::string_view> without) const;

  const JsonDocument* document_;
  size_t node_;
  bool skips_nulls_ = false;
};

bool is_json(std::string_view text);

/// A quoted JSON string. @throws ModelError if it is not UTF-8
std::string json_text(std::string_view text);
/// A number formatted like nlohmann_json: 0.001, 1.0, 1e-05.
std::string json_text(double value);

}  // namespace parsimony
