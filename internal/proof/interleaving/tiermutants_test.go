package interleaving

import (
	"testing"

	"github.com/seed-181794aa/ratelimit/internal/proof/modelcheck/overlay"
)

func TestPlantedBugsInTiersAreFound(t *testing.T) { findBugs(t, tierMutants, onTiers) }

// tierMutants are variants with one bug each in keys that change their tiers.
var tierMutants = []overlay.Variant{
	mutant("a look does not load a cell of another tier again", placeGo,
		"if !isSealed(own) && m.owns(c) ||",
		"if !isSealed(own) ||"),
	mutant("a refusal leaves the key in its tier", spendGo,
		"case !s.granted && c.tier() == tierOf(m.owner):",
		"case !s.granted:"),
	mutant("a cell of another tier is read in the tier of the call", limitsGo,
		"if c.tier() == tierOf(m.owner) {",
		"if true {"),
	mutant("a key changes its tier at the time of the last change", limitsGo,
		"own.balanceSince(c, word), t)",
		"own.balanceSince(c, word), own.supply.from)"),
	mutant("a charge forgets its tier", placeGo,
		"if p.tier > 0 {",
		"if p.tier > 1 {"),
}
