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
  int64_t params = 0;                   ///< elements; a shared weight counts at its first reader
  int64_t macs = 0;                     ///< multiply-adds
  std::vector<std::string> groups_in;   ///< ids of the groups of the data that it reads
  std::vector<std::string> groups_out;  ///< and of the data that it produces
  bool shape_arithmetic = false;        ///< its result is known statically
  int64_t memory = 0;  ///< bytes of activations that are alive while it runs, see ActivationMemory
};

struct Inspection {
  std::vector<InputRow> inputs;
  std::vector<NodeRow> nodes;
  int64_t params = 0;  ///< of the whole network, including unused weights
  int64_t macs = 0;
  std::vector<std::string> uncounted;  ///< see `uncounted`
  int64_t peak_memory = 0;             ///< peak bytes of activations
  int64_t arena = 0;                   ///< bytes of an arena for all of them
  int groups = 0;
  int64_t channels = 0;  ///< prunable channels of all groups
};

std::vector<InputRow> input_rows(const Graph& graph, const Facts& facts, const Probe& probe);

/// Returns nodes with unknown multiply-adds (`hides_macs`), which are not counted: "If_0 (If)".
std::vector<std::string> uncounted(const Graph& graph, const Facts& facts);

/// Returns lines with the inputs for which MACs are counted, and the nodes that are not counted.
std::string macs_text(const std::vector<InputRow>& inputs,
                      const std::vector<std::string>& uncounted);

/// Returns "image[2, 1, 28, 28]", separated by commas, with "(assumed)" for assumed sizes.
std::string to_text(const std::vector<InputRow>& inputs);

/// Counts parameters and multiply-adds for the shapes in `facts`, inferred with `probe`.
Inspection inspect(const Graph& graph, const Facts& facts, const Coupling& coupling,
                   const Probe& probe = {});

/// Renders a table. Nodes of shape arithmetic are only counted, unless `all`.
std::string to_text(const Inspection& inspection, bool all = false);

/// Renders the bytes of live activations during each node, as a curve.
std::string memory_text(const Inspection& inspection);

/// Returns {"parsimony_inspect": 1, "inputs": […], "nodes": […], "totals": {…}}.
std::string to_json(const Inspection& inspection);

}  // namespace parsimony
