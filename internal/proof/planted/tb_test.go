package planted

const chargeGo = "tb/charge.go"

var tbBugs = []bug{
	{
		"a refusal of TakeAll leaves the keys in their tiers", chargeGo,
		"false, refuse(t, charges, decisions)",
		"false, nil",
	},
	{
		"TakeAll takes after a look that has failed", chargeGo,
		"c.Peek(t); err != nil {\n\t\t\t\treturn decisions, false, err\n",
		"c.Peek(t); err != nil {\n\t\t\t\tcontinue\n",
	},
	{
		"a charge that was not asked has the decision of the call before", chargeGo,
		"\tclear(decisions)\n",
		"",
	},
	{
		"TakeAll undoes the first charge first", chargeGo,
		"for ; i > 0; i-- {\n\t\t\t\tcharges[i-1].Cancel()",
		"for j := range i {\n\t\t\t\tcharges[j].Cancel()",
	},
	{
		"a reservation that was refused cannot be settled", "tb/reservation.go",
		"\tif r.held == nil {\n\t\treturn nil\n\t}\n\treturn r.held.Settle",
		"\treturn r.held.Settle",
	},
	{
		"an array of no elements holds an interface", "tb/key.go",
		"return t.Len() > 0 && holdsInterface(t.Elem())",
		"return holdsInterface(t.Elem())",
	},
	{
		"the zero Option is not one", "tb/option.go",
		"\t\tif o.set == nil { // the zero Option\n\t\t\tcontinue\n\t\t}\n",
		"",
	},
}
