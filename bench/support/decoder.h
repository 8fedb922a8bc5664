// A decoder of language models as exporters leave it, with weights in float16 beside the model.
#pragma once

#include <cstdint>
#include <string>

namespace parsimony::bench {

/// Sizes of a decoder; the defaults are those of a network of 7 billion parameters cut to 4
/// layers, whose weights take 2.5 GB.
struct DecoderSizes {
  int64_t layers = 4;
  int64_t width = 4096;
  int64_t hidden = 14336;  ///< of the gated feed-forward part
  int64_t heads = 32;      ///< of the queries
  int64_t key_heads = 8;   ///< of keys and values; each serves heads / key_heads of the queries
  int64_t words = 48000;   ///< rows of the embedding, columns of the head
  int64_t positions = 16;  ///< length of the sequence
};

/// Token numbers [batch, positions] to logits [batch, positions, words]: embedding, and per layer
/// RMS normalisation, grouped-query attention with rotary positions under a causal mask, and
/// down(SiLU(gate) · up). The weights lie in PATH.data, which is written in pieces.
/// @returns bytes of PATH.data. @throws std::runtime_error if a file cannot be written
int64_t save_decoder(const std::string& path, const DecoderSizes& sizes = {});

}  // namespace parsimony::bench
