#include "parsimony/checkpoints/pickle.h"

#include <gtest/gtest.h>

#include <array>

#include "parsimony/base/errors.h"

namespace parsimony::pickle {
namespace {

using namespace std::string_literals;  // NOLINT(google-build-using-namespace)

std::vector<int64_t> integers(const Pickle& pickle, const Part& tuple) {
  std::vector<int64_t> values;
  for (const Part& part : pickle[tuple].parts) values.push_back(*pickle.integer_of(part));
  return values;
}

TEST(Pickle, BuildsWhatEveryProtocolWrites) {
  // {"a": (1, -2, 70000), "b": 1.5} as CPython pickles it.
  const std::array<std::string, 4> pickles = {
      "(dp0\nVa\np1\n(I1\nI-2\nI70000\ntp2\nsVb\np3\nF1.5\ns."s,
      "}q\0(X\x01\0\0\0aq\x01(K\x01J\xfe\xff\xff\xffJp\x11\x01\0tq\x02X\x01\0\0\0bq\x03G?\xf8\0\0\0\0\0\0u."s,
      "\x80\x02}q\0(X\x01\0\0\0aq\x01K\x01J\xfe\xff\xff\xffJp\x11\x01\0\x87q\x02X\x01\0\0\0bq\x03G?\xf8\0\0\0\0\0\0u."s,
      "\x80\x04\x95\x24\0\0\0\0\0\0\0}\x94(\x8c\x01"
      "a\x94K\x01J\xfe\xff\xff\xffJp\x11\x01\0\x87\x94\x8c\x01"
      "b\x94G?\xf8\0\0\0\0\0\0u."s,
  };
  for (const std::string& bytes : pickles) {
    const Pickle pickle(bytes, "p");
    EXPECT_EQ(pickle.bytes(), bytes);
    const Part* tuple = pickle.find(pickle.root().object, "a");
    ASSERT_NE(tuple, nullptr);
    EXPECT_EQ(integers(pickle, *tuple), (std::vector<int64_t>{1, -2, 70000}));
    EXPECT_EQ(pickle[*pickle.find(pickle.root().object, "b")].number, 1.5);
    EXPECT_EQ(PickleEdit(pickle).bytes(), bytes);

    PickleEdit edit(pickle);
    edit.set(*tuple, std::vector<int64_t>{300, 4, int64_t{1} << 40});
    const std::string changed = edit.bytes();
    const Pickle again(changed, "p");
    EXPECT_EQ(integers(again, *again.find(again.root().object, "a")),
              (std::vector<int64_t>{300, 4, int64_t{1} << 40}));
    EXPECT_EQ(again[*again.find(again.root().object, "b")].number, 1.5);
  }
}

TEST(Pickle, APartThatSharesItsObjectGetsItsOwn) {
  const std::string bytes = "\x80\x02(K\x01K\x02\x86q\0h\0h\0t."s;  // t = (1, 2); (t, t, t)
  const Pickle pickle(bytes, "p");
  const std::vector<Part> parts = pickle[pickle.root()].parts;
  PickleEdit edit(pickle);
  edit.set(parts[0], std::vector<int64_t>{7, 8});
  edit.set(parts[1], std::vector<int64_t>{7, 8});
  edit.set(parts[2], std::vector<int64_t>{1, 2});
  const std::string changed = edit.bytes();
  EXPECT_EQ(changed, "\x80\x02(K\x07K\x08\x86q\0h\0K\x01K\x02\x86t."s);
}

/// {"a": ("s", 1), "b": ("s", 2)}, where both have one "s".
const std::string kShared =
    "\x80\x02}q\0(X\x01\0\0\0aq\x01X\x01\0\0\0sq\x02K\x01\x86q\x03"
    "X\x01\0\0\0bq\x04h\x02K\x02\x86q\x05u."s;

TEST(Pickle, WhatARemovedEntryBuiltIsBuiltByOthers) {
  const Pickle pickle(kShared, "p");
  const std::span<const Part> items = pickle.items_of(pickle.root().object);
  PickleEdit edit(pickle);
  edit.remove(items[0], items[1]);
  edit.rename(items[2], "long");
  EXPECT_EQ(edit.bytes(), "\x80\x02}q\0(X\x04\0\0\0longX\x01\0\0\0sq\x02K\x02\x86q\x05u."s);
}

TEST(Pickle, WhatNoOtherEntryFetchesLeavesWithItsOwn) {
  const Pickle pickle(kShared, "p");
  const std::span<const Part> items = pickle.items_of(pickle.root().object);
  PickleEdit edit(pickle);
  edit.remove(items[2], items[3]);
  EXPECT_EQ(edit.bytes(), "\x80\x02}q\0(X\x01\0\0\0aq\x01X\x01\0\0\0sq\x02K\x01\x86q\x03u."s);
  const std::string alone = "\x80\x02}q\0X\x01\0\0\0aK\x01s."s;  // an instruction for one entry
  const Pickle single(alone, "p");
  PickleEdit empty(single);
  const std::span<const Part> entry = single.items_of(single.root().object);
  empty.remove(entry[0], entry[1]);
  EXPECT_EQ(empty.bytes(), "\x80\x02}q\0."s);
}

TEST(Pickle, AContainerOfARemovedEntryIsNotBuiltAgain) {
  const std::string bytes =
      "\x80\x02}q\0(X\x01\0\0\0a]q\x01K\x01"
      "aX\x01\0\0\0bh\x01u."s;
  const Pickle pickle(bytes, "p");
  const std::span<const Part> items = pickle.items_of(pickle.root().object);
  PickleEdit edit(pickle);
  edit.remove(items[0], items[1]);
  EXPECT_THROW(static_cast<void>(edit.bytes()), UnsupportedError);
}

TEST(Pickle, DescribesCallsAndRunsNone) {
  const Pickle pickle("cos\nsystem\n(S'rm -rf /'\ntR."s, "p");
  const Object& call = pickle[pickle.root()];
  EXPECT_EQ(call.kind, Kind::kCall);
  EXPECT_EQ(pickle.global_of(pickle.root().object), "os.system");
  EXPECT_EQ(pickle.globals(), std::vector<std::string_view>{"os.system"});
}

TEST(Pickle, NamesTheByteOfWhatIsNone) {
  const auto refusal = [](const std::string& bytes) -> std::string {
    try {
      const Pickle pickle(bytes, "file");
    } catch (const ModelError& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_EQ(refusal("\x80\x02K"),
            "file: byte 2 of the pickle: the pickle ends in the middle of an "
            "instruction");
  const std::array<std::string, 34> hostile = {""s,
                                               "\x80"s,
                                               "\x80\x09N."s,
                                               "."s,
                                               "0."s,
                                               "1."s,
                                               "2."s,
                                               "t."s,
                                               "R."s,
                                               "NR."s,
                                               "b."s,
                                               "Nb."s,
                                               "}NNb."s,
                                               "a."s,
                                               "NNa."s,
                                               "s."s,
                                               "}Ns."s,
                                               "}(Nu."s,
                                               "(Nd."s,
                                               "h\0."s,
                                               "j\xff\xff\xff\xff."s,
                                               "g9\n."s,
                                               "gx\n."s,
                                               "X\xff\xff\xff\xff"
                                               "a."s,
                                               "\x8d\xff\xff\xff\xff\xff\xff\xff\xff"
                                               "a."s,
                                               "B\xff\xff\xff\x7f."s,
                                               "\x8b\xff\xff\xff\xff."s,
                                               "\x93."s,
                                               "NN\x93."s,
                                               "(o."s,
                                               "(ios\n."s,
                                               "\x95\xff\xff\xff\xff\xff\xff\xff\xffN."s,
                                               "\xfe."s,
                                               "I12"s};
  for (const std::string& bytes : hostile) {
    EXPECT_NE(refusal(bytes), "none") << testing::PrintToString(bytes);
  }
}

TEST(Pickle, DepthAndSharingCostWhatTheyTake) {
  std::string nested;
  for (int i = 0; i < 100'000; ++i) nested += "]";
  for (int i = 1; i < 100'000; ++i) nested += "a";
  EXPECT_EQ(Pickle(nested + ".", "p").objects().size(), 100'003U);
  // Each list holds the one before ten times: 10^30 elements, if anybody walked them.
  std::string bomb = "]q\0"s;
  for (char i = 1; i < 30; ++i) {
    bomb += "](";
    for (int k = 0; k < 10; ++k) bomb += std::string("h") + static_cast<char>(i - 1);
    bomb += std::string("eq") + i;
  }
  const Pickle pickle(bomb + ".", "p");
  EXPECT_EQ(pickle[pickle.root()].parts.size(), 10U);
}

}  // namespace
}  // namespace parsimony::pickle
