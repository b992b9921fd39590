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
		"c.tier() == tierOf(m.owner) {",
		"true {"),
	mutant("a cell of another tier is read in the tier of the call", limitsGo,
		"if c.tier() != tierOf(m.owner) {",
		"if false {"),
	mutant("a key changes its tier at the time of the last change", limitsGo,
		"b = m.inherit(own, b, t)",
		"b = m.inherit(own, b, own.supply.from)"),
	mutant("a charge forgets its tier", placeGo,
		"if p.tier > 0 {",
		"if p.tier > 1 {"),
}
