// Answers of the Hugging Face hub: a repository's files and card, and which of them a data set is.
#include "data/fetch/hub.h"

#include "data/fetch/hub_answers.h"
#include "data/fetch/hub_data.h"
#include "fuzz.h"

FUZZ(bytes) {
  lockstep::try_one([&] { return lockstep::hub_tree_of(bytes, "https://hub/tree"); });
  lockstep::try_one([&] { return lockstep::kept_hub_listing_of(bytes, "kept.json"); });
  const lockstep::HubListing listing = lockstep::hub_listing_of(bytes, "https://hub/revision");
  lockstep::use(lockstep::kept_text(listing));
  const lockstep::HubReference set{.repository = "owner/name", .dataset = true};
  for (const auto content : {lockstep::HubContent::kTables, lockstep::HubContent::kImages}) {
    lockstep::try_one(
        [&] { return lockstep::choose_hub_data(listing, {.dataset = set, .content = content}); });
  }
}
