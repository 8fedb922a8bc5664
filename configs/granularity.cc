// What is removed as one unit: channels on either side, heads, elements, blocks.
#include <algorithm>

#include "parsimony/base/errors.h"
#include "parsimony/configs/config.h"
#include "parsimony/configs/request_impl.h"
#include "parsimony/configs/words_impl.h"

namespace parsimony {

namespace {

enum class Kind : uint8_t { kDefault, kOut, kIn, kElement, kChannel, kHead, kHeadDim, kGroup };

constexpr WordTable<Kind, 9> kWords = {{{"default", Kind::kDefault},
                                        {"out_channel", Kind::kOut},
                                        {"per_channel", Kind::kOut},
                                        {"in_channel", Kind::kIn},
                                        {"element", Kind::kElement},
                                        {"channel", Kind::kChannel},
                                        {"head", Kind::kHead},
                                        {"head_dim", Kind::kHeadDim},
                                        {"group", Kind::kGroup}}};

/// [1, -1, -1, -1] are output channels, [-1, 1, -1, -1] input channels, others blocks.
Kind kind_of(const std::vector<int64_t>& block) {
  const auto ones = std::count(block.begin(), block.end(), 1);
  const auto wholes = std::count(block.begin(), block.end(), -1);
  if (ones == 1 && ones + wholes == static_cast<int64_t>(block.size()) && block.size() > 1) {
    if (block[0] == 1) return Kind::kOut;
    if (block[1] == 1) return Kind::kIn;
  }
  return Kind::kElement;
}

std::vector<int64_t> read_block(const JsonReader& value) {
  if (value.size() == 0) value.fail("the list of block sizes is empty");
  std::vector<int64_t> block;
  for (const JsonReader size : value.list()) {
    block.push_back(size.json() == "-1" ? -1 : size.integer(1, kMaxRoundTo));
  }
  if (std::count(block.begin(), block.end(), -1) == static_cast<int64_t>(block.size())) {
    value.fail("a block of the whole weight leaves nothing to choose");
  }
  return block;
}

void set_kind(Kind kind, GivenRequest& given) {
  Request& request = given.request;
  given.block.clear();
  request.in_channels = kind == Kind::kIn;
  request.granularity.reset();
  for (const char* key : {"element_granularity", "channel_granularity"}) given.keys.erase(key);
  if (kind == Kind::kElement) given.keys.insert("element_granularity");
  if (kind != Kind::kElement && kind != Kind::kDefault) given.keys.insert("channel_granularity");
  if (kind == Kind::kChannel) request.granularity = Granularity::kChannel;
  if (kind == Kind::kHead) request.granularity = Granularity::kHead;
  if (kind == Kind::kHeadDim) request.granularity = Granularity::kHeadDim;
  if (kind == Kind::kGroup) request.granularity = Granularity::kGroup;
}

/// [4, 1] are blocks of 4 outputs and 1 input of a matrix.
std::string block_criterion(const std::vector<int64_t>& block, std::string_view place) {
  if (block.size() != 2 || block[0] < 1 || block[1] < 1) {
    throw UnsupportedError(place,
                           ": blocks are [outputs, inputs] of a weight matrix, both above 0; "
                           "or [1, -1, …] for output and [-1, 1, …] for input channels");
  }
  return parse_criterion("block:" + std::to_string(block[0]) + 'x' + std::to_string(block[1]),
                         place);
}

}  // namespace

void read_granularity(const JsonReader& value, GivenRequest& given) {
  if (!value.is_list()) {
    if (!value.is_text()) value.wanted("a string or a list of sizes");
    return set_kind(parse_word(value.text(), value.place(), kWords), given);
  }
  const std::vector<int64_t> block = read_block(value);
  const Kind kind = kind_of(block);
  set_kind(kind, given);
  const bool single =
      std::count(block.begin(), block.end(), 1) == static_cast<int64_t>(block.size());
  if (kind == Kind::kElement && !single) given.block = block_criterion(block, value.place());
}

}  // namespace parsimony
