// Union-find over 0..n-1, by size and with path halving.
#pragma once

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace parsimony {

class UnionFind {
 public:
  explicit UnionFind(size_t n = 0) : parent_(n), size_(n, 1) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }

  int32_t add() {
    parent_.push_back(static_cast<int32_t>(parent_.size()));
    size_.push_back(1);
    return parent_.back();
  }

  int32_t find(int32_t i) {
    size_t at = i;
    while (parent_[at] != static_cast<int32_t>(at)) {
      parent_[at] = parent_[parent_[at]];
      at = parent_[at];
    }
    return static_cast<int32_t>(at);
  }

  void unite(int32_t a, int32_t b) {
    a = find(a);
    b = find(b);
    if (a == b) return;
    if (size_[a] < size_[b]) std::swap(a, b);
    parent_[b] = a;
    size_[a] += size_[b];
  }

  size_t count() const { return parent_.size(); }

 private:
  std::vector<int32_t> parent_;
  std::vector<int32_t> size_;
};

}  // namespace parsimony
