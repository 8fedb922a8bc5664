#include "parsimony/base/json_reader.h"

#include <gtest/gtest.h>

namespace parsimony {
namespace {

template <typename Fault = ConfigError, typename Action>
std::string fault_of(const Action& action) {
  try {
    action();
  } catch (const Fault& fault) {
    return fault.what();
  }
  return "no fault";
}

std::string fault_in(const std::string& text) {
  return fault_of([&] { JsonDocument(text, "a.json"); });
}

constexpr const char* kText = R"({"b": [1, -2, 2.5, "x", true, null], "a": {"c": {"d": []}}})";

TEST(JsonReader, ReadsInTheOrderOfTheFile) {
  const JsonDocument document(kText, "a.json");
  const JsonReader root = document.root();
  std::vector<std::string> values;
  for (const JsonReader value : root.at("b").list()) values.push_back(value.json());
  EXPECT_EQ(values, (std::vector<std::string>{"1", "-2", "2.5", "\"x\"", "true", "null"}));
  std::vector<std::string> keys;
  for (const JsonReader member : root.members()) keys.emplace_back(member.own_key());
  EXPECT_EQ(keys, (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(root.at("b").size(), 6U);
  EXPECT_FALSE(root.find("e").has_value());
}

TEST(JsonReader, WritesValuesAgain) {
  const JsonDocument document(kText, "a.json");
  EXPECT_EQ(document.root().json(), R"({"b":[1,-2,2.5,"x",true,null],"a":{"c":{"d":[]}}})");
  EXPECT_EQ(document.root().json(JsonOrder::kSorted),
            R"({"a":{"c":{"d":[]}},"b":[1,-2,2.5,"x",true,null]})");
  const std::vector<std::string_view> without = {"b"};
  EXPECT_EQ(document.root().json(JsonOrder::kAsRead, without), R"({"a":{"c":{"d":[]}}})");
  EXPECT_EQ(json_text(1e-5), "1e-05");
  EXPECT_EQ(json_text(1.0), "1.0");
  EXPECT_EQ(json_text("a\"\n"), R"("a\"\n")");
  EXPECT_THROW(json_text("\xff"), ModelError);
}

TEST(JsonReader, SaysThePlaceWhatWasFoundAndWhatWasExpected) {
  const JsonDocument document(kText, "a.json", throw_as<ModelError>);
  const JsonReader root = document.root();
  std::vector<JsonReader> list;
  for (const JsonReader value : root.at("b").list()) list.push_back(value);
  const auto fault = [](const auto& action) { return fault_of<ModelError>(action); };
  EXPECT_EQ(root.place(), "a.json");
  EXPECT_EQ(root.at("a").at("c").at("d").place(), "a.json: a.c.d");
  EXPECT_EQ(fault([&] { list[1].integer(0, 9); }),
            "a.json: b[1]: found -2, expected an integer from 0 to 9");
  EXPECT_EQ(fault([&] { list[2].count(); }), "a.json: b[2]: found 2.5, expected a count");
  EXPECT_EQ(fault([&] { list[2].number(kShare); }),
            "a.json: b[2]: found 2.5, expected a number in [0, 1]");
  EXPECT_EQ(fault([&] { list[3].number(); }), "a.json: b[3]: found \"x\", expected a number");
  EXPECT_EQ(fault([&] { list[4].text(); }), "a.json: b[4]: found true, expected a string");
  EXPECT_EQ(fault([&] { list[5].flag(); }), "a.json: b[5]: found null, expected true or false");
  EXPECT_EQ(fault([&] { root.at("a").list(); }), "a.json: a: found an object, expected a list");
  EXPECT_EQ(fault([&] { root.at("b").members(); }), "a.json: b: found a list, expected an object");
  EXPECT_EQ(fault([&] { root.at("a").at("b"); }), "a.json: a: lacks \"b\"");
  EXPECT_EQ(fault([&] {
              root.only({"aa", "b"});
            }),
            "a.json: unknown key \"a\". Did you mean \"aa\"?");
  constexpr std::string_view kWords[] = {"one", "two", "three"};
  EXPECT_EQ(fault([&] { list[3].word(kWords); }),
            "a.json: b[3]: found \"x\", expected \"one\", \"two\" or \"three\"");
}

TEST(JsonReader, RefusesWhatIsNoJson) {
  EXPECT_TRUE(fault_in("{\n  \"a\": 1,,\n}").starts_with("a.json:2:10: not JSON: syntax error "));
  EXPECT_TRUE(fault_in("").starts_with("a.json:1:1: not JSON: "));
  EXPECT_TRUE(fault_in("[1e999]").starts_with("a.json:1:"));
  EXPECT_EQ(fault_in(std::string(100000, '[')), "a.json: is nested too deeply");
  EXPECT_EQ(fault_in(R"({"a": [{"b": 1, "c": 2, "b": 3}]})"),
            "a.json: a[0]: key \"b\" occurs twice in one object");
  EXPECT_EQ(fault_in("\"" + std::string(3, '\x80') + "\"").substr(0, 18), "a.json:1:2: not JS");
}

TEST(JsonReader, LongValuesAreShownInPart) {
  const std::string word = "ää" + std::string(60, 'x');
  const JsonDocument document("[\"" + word + "\"]", "a.json");
  EXPECT_EQ(fault_of([&] { (*document.root().list().begin()).flag(); }),
            "a.json: [0]: found \"ää" + std::string(35, 'x') + "…, expected true or false");
}

TEST(JsonReader, NullsCanCountAsLeftOut) {
  const JsonDocument document(R"({"a": null})", "a.json");
  EXPECT_TRUE(document.root().has("a"));
  EXPECT_FALSE(document.root().without_nulls().has("a"));
}

TEST(Interval, IsWrittenAsInMathematics) {
  EXPECT_EQ(kBelowOne.text(), "[0, 1)");
  EXPECT_EQ(kPositive.text(), "(0, ∞)");
  EXPECT_EQ((Interval{.lowest = 1, .highest = 2147483647}.text()), "[1, 2147483647]");
  EXPECT_TRUE(kShare.contains(1));
  EXPECT_FALSE(kBelowOne.contains(1));
  EXPECT_FALSE(kPositive.contains(0));
}

}  // namespace
}  // namespace parsimony
