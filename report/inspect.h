// The composition of a network: one row per node, with its weights, its cost and its groups.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/graph/infer.h"
#include "parsimony/masks/coupling.h"
#include "parsimony/report/rows.h"

namespace parsimony {

struct NodeRow {
  std::string node;
  std::string op;
  std::vector<std::pair<std::string, Shape>> weights;  ///< the parameters that it reads
  std::vector<std::optional<Shape>> outputs;
  int64_t params = 0;                   ///< elements; a shared weight counts where it is first read
  int64_t macs = 0;                     ///< multiply-adds
  std::vector<std::string> groups_in;   ///< ids of the groups of the data that it reads
  std::vector<std::string> groups_out;  ///< and of the data that it produces
  bool shape_arithmetic = false;        ///< its result is known statically
  int64_t memory = 0;  ///< bytes of activations that are alive while it runs, see ActivationMemory
};

struct Inspection {
  std::vector<InputRow> inputs;
  std::vector<NodeRow> nodes;
  int64_t params = 0;  ///< of the whole network, also of weights that no node reads
  int64_t macs = 0;
  std::vector<std::string> uncounted;  ///< see `uncounted`
  int64_t peak_memory = 0;             ///< bytes of activations, at most
  int64_t arena = 0;                   ///< bytes of memory with a place for each of them
  int groups = 0;
  int64_t channels = 0;  ///< that can be removed, in all groups together
};

std::vector<InputRow> input_rows(const Graph& graph, const Facts& facts, const Probe& probe);

/// "If_0 (If)": nodes whose multiply-adds are not known (`hides_macs`) and not counted.
std::vector<std::string> uncounted(const Graph& graph, const Facts& facts);

/// Lines that say for which inputs MACs are counted, and which nodes are not.
std::string macs_text(const std::vector<InputRow>& inputs,
                      const std::vector<std::string>& uncounted);

/// "image[2, 1, 28, 28]"; separated, with "(assumed)" where sizes are assumed.
std::string to_text(const std::vector<InputRow>& inputs);

/// Counts parameters and multiply-adds for the shapes in `facts`, inferred with `probe`.
Inspection inspect(const Graph& graph, const Facts& facts, const Coupling& coupling,
                   const Probe& probe = {});

/// A table. Nodes of shape arithmetic are only counted, unless `all`.
std::string to_text(const Inspection& inspection, bool all = false);

/// The bytes of activations that are alive while each node runs, as a curve.
std::string memory_text(const Inspection& inspection);

/// One object: {"parsimony_inspect": 1, "inputs": […], "nodes": […], "totals": {…}}.
std::string to_json(const Inspection& inspection);

}  // namespace parsimony
