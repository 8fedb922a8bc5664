// Strongly typed ids of values, nodes and the like: each kind is a separate type that indexes only
// vectors of its kind.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <utility>
#include <vector>

namespace parsimony {

/// The invalid id of every kind. For plain integer indices it is -1.
struct None {
  constexpr operator int32_t() const { return -1; }  // NOLINT(google-explicit-constructor)
};
inline constexpr None kNone;

/// An index into the vector of all items of its kind; kNone by default.
template <typename Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr Id(None) {}  // NOLINT(google-explicit-constructor)
  explicit constexpr Id(std::integral auto number) : number_(static_cast<int32_t>(number)) {}

  constexpr int32_t number() const { return number_; }
  constexpr size_t index() const { return static_cast<size_t>(number_); }

  constexpr Id& operator++() { return ++number_, *this; }
  constexpr Id& operator--() { return --number_, *this; }
  friend constexpr bool operator==(Id, Id) = default;
  friend constexpr auto operator<=>(Id, Id) = default;
  template <typename Hash>
  friend Hash AbslHashValue(Hash hash, Id id) {
    return Hash::combine(std::move(hash), id.number_);
  }

 private:
  int32_t number_ = kNone;
};

using ValueId = Id<struct ValueTag>;
using NodeId = Id<struct NodeTag>;
using WeightId = Id<struct WeightTag>;
using BodyId = Id<struct BodyTag>;

/// The range of the first ids, in order.
template <typename Id>
class IdRange {
 public:
  struct iterator {
    using difference_type = std::ptrdiff_t;
    using value_type = Id;
    using pointer = const Id*;
    using reference = Id;
    using iterator_category = std::bidirectional_iterator_tag;
    Id at;
    Id operator*() const { return at; }
    iterator& operator++() { return ++at, *this; }
    iterator& operator--() { return --at, *this; }
    iterator operator++(int) { return std::exchange(*this, {Id(at.number() + 1)}); }
    iterator operator--(int) { return std::exchange(*this, {Id(at.number() - 1)}); }
    bool operator==(const iterator&) const = default;
  };

  explicit IdRange(size_t count = 0) : end_(count) {}
  iterator begin() const { return {Id(0)}; }
  iterator end() const { return {end_}; }
  size_t size() const { return end_.index(); }

 private:
  Id end_;
};

/// An IdRange from the last id to the first. Not std::ranges::subrange, which clang 14 cannot read.
template <typename Id>
class ReversedIdRange {
 public:
  explicit ReversedIdRange(IdRange<Id> ids) : ids_(ids) {}
  auto begin() const { return std::reverse_iterator(ids_.end()); }
  auto end() const { return std::reverse_iterator(ids_.begin()); }

 private:
  IdRange<Id> ids_;
};

/// A vector indexed by ids of one kind.
template <typename Id, typename T>
class IdVector {
 public:
  using value_type = T;
  using reference = typename std::vector<T>::reference;
  using const_reference = typename std::vector<T>::const_reference;

  IdVector() = default;
  IdVector(std::initializer_list<T> items) : items_(items) {}
  explicit IdVector(size_t count, const T& item = T()) : items_(count, item) {}
  explicit IdVector(std::vector<T> items) : items_(std::move(items)) {}

  reference operator[](Id id) { return items_[id.index()]; }
  const_reference operator[](Id id) const { return items_[id.index()]; }

  size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  /// Is the id within the vector?
  bool has(Id id) const { return id.index() < items_.size(); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  auto rbegin() const { return items_.rbegin(); }
  auto rend() const { return items_.rend(); }
  reference back() { return items_.back(); }
  const_reference back() const { return items_.back(); }
  const_reference front() const { return items_.front(); }

  /// The ids of all current elements.
  IdRange<Id> ids() const { return IdRange<Id>(items_.size()); }
  ReversedIdRange<Id> reversed_ids() const { return ReversedIdRange<Id>(ids()); }
  Id next_id() const { return Id(items_.size()); }  ///< of the next element
  Id last_id() const { return Id(items_.size() - 1); }
  /// The id of an element of this vector.
  Id id_of(const T& element) const { return Id(&element - items_.data()); }

  Id push_back(T item) { return items_.push_back(std::move(item)), last_id(); }
  template <typename... Args>
  reference emplace_back(Args&&... args) {
    return items_.emplace_back(std::forward<Args>(args)...);
  }
  void reserve(size_t count) { items_.reserve(count); }
  void resize(size_t count, const T& item = T()) { items_.resize(count, item); }
  void assign(size_t count, const T& item) { items_.assign(count, item); }
  void clear() { items_.clear(); }
  void pop_back() { items_.pop_back(); }

  /// The elements as a plain vector, for code without ids.
  std::vector<T>& raw() { return items_; }
  const std::vector<T>& raw() const { return items_; }

  bool operator==(const IdVector&) const = default;

 private:
  std::vector<T> items_;
};

}  // namespace parsimony

namespace std {

template <typename Tag>
struct hash<parsimony::Id<Tag>> {
  size_t operator()(parsimony::Id<Tag> id) const { return hash<int32_t>()(id.number()); }
};

}  // namespace std
