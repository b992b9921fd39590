package algorithm

// slidingLog has a record of each grant of the last window. It is exact: no window of that length,
// wherever it begins, has more than the burst.
//
// It needs a record for each grant, so a key takes memory in proportion to the burst.
func slidingLog(burst, window uint64) Take {
	type record struct{ instant, tokens uint64 }
	var records []record // in the order of time
	var granted uint64   // their sum
	return func(now, cost uint64) bool {
		for len(records) > 0 && records[0].instant+window <= now {
			granted -= records[0].tokens
			records = records[1:]
		}
		if granted+cost > burst {
			return false
		}
		granted += cost
		records = append(records, record{now, cost})
		return true
	}
}
