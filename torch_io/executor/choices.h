// What a network chooses from: what goes into the nodes whose answer jumps.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/graph/graph.h"

namespace parsimony {

/// One floating-point operand of one run of a node.
struct Choice {
  std::string node;    ///< what messages call it
  size_t operand = 0;  ///< which of its operands
  at::Tensor numbers;  ///< as recorded, without absent channels; undefined if that run had none
  at::Tensor found;    ///< as replayed; undefined if no run has asked
};

/// TopK, NonMaxSuppression, comparisons, rounding and such turn on the last bit of what they read,
/// so that two networks which compute the same may answer differently. With the choices of one run
/// laid before another both choose alike, and what each would have chosen from can be compared.
///
///     Choices choices;
///     { const Choices::Use use(choices, Choices::Mode::kRecord); one->forward(x); }
///     { const Choices::Use use(choices, Choices::Mode::kReplay); other->forward(x); }
///
/// One may hold the choices of several inputs, which the other network must take in their order.
class Choices {
 public:
  enum class Mode {
    kRecord,  ///< keep what is chosen from
    kReplay   ///< choose from what was kept; nodes are told apart by their first output's name
  };

  /// While it lives, every GraphModule that this thread runs uses `choices`. Uses nest.
  class Use {
   public:
    Use(Choices& choices, Mode mode);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    Choices* before_;
  };

  /// In the order in which they were recorded, then those that only a replay asked for.
  const std::vector<Choice>& list() const { return list_; }

  /// Of this thread; null if none is in use.
  static Choices* current();
  /// What a run of `node` is to choose from in place of `operand`. `present`: which elements the
  /// small network has, undefined if all.
  at::Tensor given(const Node& node, const std::string& key, size_t index,
                   const at::Tensor& operand, const at::Tensor& present);

 private:
  struct Runs {
    std::vector<size_t> recorded;  ///< places in `list_`
    size_t replayed = 0;
  };

  Mode mode_ = Mode::kRecord;
  std::vector<Choice> list_;
  std::map<std::pair<std::string, size_t>, Runs> runs_;  ///< by key and operand
};

/// Does the answer of this node jump where what it reads hardly moves?
bool chooses(const Node& node);

}  // namespace parsimony
