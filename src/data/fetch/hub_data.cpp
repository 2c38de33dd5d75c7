#include "data/fetch/hub_data.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "data/fetch/hub_layouts.h"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;
using Files = std::vector<std::string>;
using Splits = std::vector<HubSplit>;

constexpr const char* kConverted = "refs/convert/parquet";

// A text, or a list of texts.
Files texts_of(const Json& json) {
  return json.is_array() ? json.get<Files>() : Files{json.get<std::string>()};
}

class Chooser {
 public:
  Chooser(const HubListing& listing, const HubDataRequest& request)
      : listing_(listing), request_(request) {
    for (const std::string& file : listing.files) {
      if (!hub_file_kind(file, request.content).empty()) files_.push_back(file);
    }
    std::sort(files_.begin(), files_.end());
    out_.source = request.dataset;
    out_.source.revision = listing.commit;
    place_ = request.dataset.text();
    card_ = Json::parse(listing.card, nullptr, /*allow_exceptions=*/false);
    if (!card_.is_object()) card_ = Json::object();
  }

  HubData run() {
    if (files_.empty()) fail_without_files();
    Splits found;
    try {
      found = read_configurations();
      read_class_names();
    } catch (const nlohmann::json::exception& problem) {
      throw unknown_card(problem.what());
    }
    keep_one_kind(found);
    take_splits(std::move(found));
    if (request_.content == HubContent::kImages) add_metadata();
    return std::move(out_);
  }

 private:
  DataError unknown_card(const std::string& why) const {
    DataError error("{}: its card (README.md) describes its files in a way that is not known",
                    place_);
    error.set_cause(why);
    return error;
  }

  Splits read_configurations() {
    const Json configs = card_.value("configs", Json::array());
    if (configs.is_array() && !configs.empty()) return configured(configs);
    std::map<std::string, Splits> converted = converted_layout(files_);
    if (!converted.empty()) {
      Files names;
      for (const auto& [name, splits] : converted) names.push_back(name);
      out_.configuration = choose_configuration(names, "default");
      return std::move(converted.at(out_.configuration));
    }
    if (request_.configuration.empty()) return splits_by_name(files_);
    out_.configuration = request_.configuration;
    return splits_by_name(files_below(request_.configuration));
  }

  // A configuration that the card does not name may still be a folder.
  Files files_below(const std::string& folder) const {
    Files out, folders;
    for (const std::string& file : files_) {
      const std::size_t slash = file.find('/');
      if (file.starts_with(folder + "/")) out.push_back(file);
      if (slash != std::string::npos) folders.push_back(file.substr(0, slash));
    }
    if (!out.empty()) return out;
    folders.erase(std::unique(folders.begin(), folders.end()), folders.end());
    throw DataError("{}: no subset \"{}\"{} ({})", place_, folder, did_you_mean(folder, folders),
                    folders.empty() ? "there is only one" : join(folders, ", "));
  }

  std::string choose_configuration(const Files& names, const std::string& usual) const {
    const std::string& wanted = request_.configuration;
    if (!wanted.empty()) {
      if (std::find(names.begin(), names.end(), wanted) != names.end()) return wanted;
      throw DataError("{}: no subset \"{}\"{} ({})", place_, wanted, did_you_mean(wanted, names),
                      join(names, ", "));
    }
    if (names.size() == 1) return names.front();
    if (std::find(names.begin(), names.end(), usual) != names.end()) return usual;
    DataError error("{}: which of its {} subsets? ({})", place_, names.size(), join(names, ", "));
    error.set_advice("--subset " + names.front());
    throw error;
  }

  Splits configured(const Json& configs) {
    Files names;
    std::string usual = "default";
    for (const Json& config : configs) {
      names.push_back(config.value("config_name", "default"));
      if (config.value("default", false)) usual = names.back();
    }
    out_.configuration = choose_configuration(names, usual);
    const auto at = std::find(names.begin(), names.end(), out_.configuration) - names.begin();
    const Json& config = configs.at(static_cast<std::size_t>(at));
    std::string folder = config.value("data_dir", "");
    while (folder.ends_with('/')) folder.pop_back();
    if (folder.starts_with("./")) folder.erase(0, 2);
    const std::string below = folder.empty() || folder == "." ? "" : folder + "/";
    if (!config.contains("data_files")) {
      return splits_by_name(below.empty() ? files_ : matching_files(files_, below + "**"));
    }
    Splits out;
    const Json& given = config.at("data_files");
    auto add = [&](const std::string& split, const Json& patterns) {
      for (const std::string& pattern : texts_of(patterns)) {
        add_hub_files(split, matching_files(files_, below + pattern), out);
      }
    };
    if (given.is_array() && !given.empty() && given.front().is_object()) {
      for (const Json& one : given) add(one.at("split"), one.at("path"));
    } else if (given.is_object()) {
      for (const auto& [split, patterns] : given.items()) add(split, patterns);
    } else {
      add("train", given);
    }
    std::erase_if(out, [](const HubSplit& split) { return split.files.empty(); });
    return out;
  }

  // dataset_info is an object, or a list with one for each configuration.
  void read_class_names() {
    Json all = card_.value("dataset_info", Json::array());
    if (all.is_object()) all = Json::array({all});
    for (const Json& info : all) {
      const std::string name = info.value("config_name", "default");
      if (all.size() > 1 && !out_.configuration.empty() && name != out_.configuration) continue;
      for (const Json& feature : info.value("features", Json::array())) {
        const Json type = feature.value("dtype", Json());
        if (!type.is_object() || !type.contains("class_label")) continue;
        const Json& label_names = type.at("class_label").at("names");
        Files& classes = out_.class_names[feature.at("name")];
        classes.resize(label_names.size());
        for (const auto& [number, label] : label_names.items()) {
          std::size_t at = classes.size();
          std::from_chars(number.data(), number.data() + number.size(), at);
          if (at >= classes.size()) throw unknown_card(fmt::format("no class {}", number));
          classes[at] = label.is_string() ? label.get<std::string>() : label.dump();
        }
      }
    }
  }

  // Data sets that offer the same in several formats are read in one: tables in that of most files,
  // images as Parquet, else as archives.
  void keep_one_kind(Splits& splits) const {
    std::map<std::string, int64_t> counts;
    for (const HubSplit& split : splits) {
      for (const std::string& file : split.files) ++counts[hub_file_kind(file, request_.content)];
    }
    if (counts.size() < 2) return;
    const bool images = request_.content == HubContent::kImages;
    auto rank = [&](const auto& kind) {
      const bool parquet = kind.first == ".parquet", archive = kind.first == ".tar";
      return std::pair(images ? 2 * parquet + archive : kind.second, parquet);
    };
    const std::string best =
        std::max_element(counts.begin(), counts.end(), [&](const auto& a, const auto& b) {
          return rank(a) < rank(b);
        })->first;
    for (HubSplit& split : splits) {
      std::erase_if(split.files, [&](const std::string& file) {
        return hub_file_kind(file, request_.content) != best;
      });
    }
    std::erase_if(splits, [](const HubSplit& split) { return split.files.empty(); });
  }

  // Metadata above the pictures of a split belong to it, wherever their own names would put them.
  void add_metadata() {
    for (const std::string& file : files_) {
      if (!is_hub_metadata(file)) continue;
      const std::string folder = file.substr(0, file.rfind('/') + 1);
      for (HubSplit& split : out_.splits) {
        const bool above =
            std::any_of(split.files.begin(), split.files.end(), [&](const auto& one) {
              return hub_file_kind(one, request_.content) == ".jpg" && one.starts_with(folder);
            });
        const bool listed =
            std::find(split.files.begin(), split.files.end(), file) != split.files.end();
        if (above && !listed) split.files.push_back(file);
      }
    }
  }

  void take_splits(Splits found) {
    Files names;
    for (const HubSplit& split : found) names.push_back(split.name);
    if (found.empty()) fail_without_files();
    if (request_.splits.empty()) return take_usual(std::move(found), names);
    for (const HubSplitChoice& choice : request_.splits) {
      const auto at = std::find(names.begin(), names.end(), choice.from);
      if (at == names.end()) {
        throw DataError("{}{}: no split \"{}\"{} ({})", place_,
                        out_.configuration.empty() ? "" : ", subset " + out_.configuration,
                        choice.from, did_you_mean(choice.from, names), join(names, ", "));
      }
      out_.splits.push_back(
          {choice.name, found[static_cast<std::size_t>(at - names.begin())].files});
    }
  }

  // Takes the splits of the usual names, train first.
  void take_usual(Splits found, const Files& names) {
    static const std::regex usual("(train|validation|valid|val|dev|test)(_.*)?");
    for (HubSplit& split : found) {
      std::smatch match;
      const std::string own = split.name;
      if (!std::regex_match(own, match, usual)) {
        out_.others.push_back(own);
        continue;
      }
      const std::string word = match[1];
      split.name = (word == "train" || word == "test" ? word : "validation") + match[2].str();
      out_.splits.push_back(std::move(split));
    }
    auto rank = [](const HubSplit& split) {
      return split.name == "train"        ? 0
             : split.name == "validation" ? 1
             : split.name == "test"       ? 2
                                          : 3;
    };
    std::stable_sort(out_.splits.begin(), out_.splits.end(),
                     [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
    if (!out_.splits.empty()) return;
    DataError error("{}: no split is called train, validation or test ({})", place_,
                    join(names, ", "));
    error.set_advice("--splits train=" + names.front());
    throw error;
  }

  [[noreturn]] void fail_without_files() const {
    DataError error("{}: no files of {} in it", place_,
                    request_.content == HubContent::kImages ? "images" : "texts");
    Files some(listing_.files.begin(),
               listing_.files.begin() +
                   static_cast<std::ptrdiff_t>(std::min<std::size_t>(8, listing_.files.size())));
    error.set_cause("it holds " + (some.empty() ? "nothing" : join(some, ", ")) +
                    (listing_.files.size() > some.size() ? ", ..." : ""));
    error.set_advice(request_.content == HubContent::kImages
                         ? "expected .parquet, .jpg, .png or archives (.tar, .zip) of them"
                         : "expected .parquet, .csv, .tsv, .json or .jsonl");
    throw error;
  }

  const HubListing& listing_;
  const HubDataRequest& request_;
  Files files_;  // of the wanted content, ascending
  Json card_;
  std::string place_;
  HubData out_;
};

bool has_content(const HubListing& listing, HubContent content) {
  return std::any_of(listing.files.begin(), listing.files.end(), [&](const std::string& file) {
    return !hub_file_kind(file, content).empty();
  });
}

}  // namespace

std::vector<HubSplitChoice> hub_split_choices(const std::string& text) {
  std::vector<HubSplitChoice> out;
  if (text.empty()) return out;
  for (const std::string& word : split(text, ',')) {
    const std::size_t equals = word.find('=');
    const std::string name(trim(word.substr(0, equals)));
    const std::string from(equals == std::string::npos ? name : trim(word.substr(equals + 1)));
    const bool again =
        std::any_of(out.begin(), out.end(), [&](const auto& known) { return known.name == name; });
    if (name.empty() || from.empty() || again) {
      throw ConfigError("--splits {}: expected names such as train,validation=test", text);
    }
    out.push_back({name, from});
  }
  return out;
}

std::string HubData::name() const {
  return source.text() + (configuration.empty() ? "" : " " + configuration);
}

HubData choose_hub_data(const HubListing& listing, const HubDataRequest& request) {
  return Chooser(listing, request).run();
}

HubData fetch_hub_data(const Hub& hub, const HubDataRequest& request) {
  HubListing listing = hub.listing(request.dataset);
  HubDataRequest from = request;
  if (!has_content(listing, request.content) && request.dataset.revision == "main") {
    from.dataset.revision = kConverted;
    try {
      HubListing converted = hub.listing(from.dataset);
      log_info("{}: no files that can be read; taking the hub's conversion to Parquet ({})",
               request.dataset.text(), kConverted);
      converted.card = listing.card;
      listing = std::move(converted);
    } catch (const DataError&) {
      from.dataset.revision = request.dataset.revision;  // there is no conversion
    }
  }
  HubData out = choose_hub_data(listing, from);
  if (!out.others.empty()) {
    log_info("{}: split{} {} left out; --splits takes others", request.dataset.text(),
             out.others.size() == 1 ? "" : "s", join(out.others, ", "));
  }
  Files wanted;
  for (const HubSplit& split : out.splits) {
    wanted.insert(wanted.end(), split.files.begin(), split.files.end());
  }
  out.folder = hub.fetch_all(out.source, wanted);
  return out;
}

}  // namespace lockstep
