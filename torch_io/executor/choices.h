// Operands of nodes with discontinuous results, such as selections by value.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/graph/graph.h"

namespace parsimony {

/// A floating-point operand of one execution of a node.
struct Choice {
  std::string node;    ///< its display name
  size_t operand = 0;  ///< which of its operands
  at::Tensor numbers;  ///< as recorded, without absent channels; undefined if not recorded
  at::Tensor found;    ///< as replayed; undefined if not replayed
};

/// TopK, NonMaxSuppression, comparisons, rounding and the like depend on the last bit of their
/// operands, so two equivalent networks may give different results. If operands recorded in one run
/// are replayed in the other, both select alike, and the operands themselves can be compared.
///
///     Choices choices;
///     { const Choices::Use use(choices, Choices::Mode::kRecord); one->forward(x); }
///     { const Choices::Use use(choices, Choices::Mode::kReplay); other->forward(x); }
///
/// May store the choices for several inputs, which the other network must process in the same
/// order.
class Choices {
 public:
  enum class Mode {
    kRecord,  ///< record the operands
    kReplay   ///< use the recorded operands; nodes are identified by their first output's name
  };

  /// During its lifetime, every GraphModule that this thread runs uses `choices`. Uses nest.
  class Use {
   public:
    Use(Choices& choices, Mode mode);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    Choices* before_;
  };

  /// The recorded choices in order, followed by those that occurred only in a replay.
  const std::vector<Choice>& list() const { return list_; }

  /// Returns the instance in use in this thread; null if none is.
  static Choices* current();
  /// Returns the tensor that `node` should use instead of `operand`. `present`: the elements of the
  /// small network, undefined if all.
  at::Tensor given(const Node& node, const std::string& key, size_t index,
                   const at::Tensor& operand, const at::Tensor& present);

 private:
  struct Runs {
    std::vector<size_t> recorded;  ///< indices into `list_`
    size_t replayed = 0;
  };

  Mode mode_ = Mode::kRecord;
  std::vector<Choice> list_;
  std::map<std::pair<std::string, size_t>, Runs> runs_;  ///< by key and operand
};

/// Whether the results of this node are discontinuous in its operands.
bool chooses(const Node& node);

}  // namespace parsimony
