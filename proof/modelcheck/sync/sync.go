// Package sync replaces the standard library's sync in code that is explored.
package sync

import "github.com/seed-181794aa/ratelimit/proof/modelcheck"

// Mutex replaces sync.Mutex.
type Mutex struct {
	modelcheck.Object
	held    bool
	guarded uint64        // digest of the data that the lock guards
	digest  func() uint64 // nil: the results that its holders have seen
}

// Guards sets the function that digests the data that the lock guards. Digests may be equal
// only if the data is equal.
func (m *Mutex) Guards(digest func() uint64) { m.digest = digest }

// Lock is a step that waits until the lock is free.
func (m *Mutex) Lock() {
	m.Step(modelcheck.Lock, &m.held)
	m.held = true
	m.Record(modelcheck.Lock, m.guarded, 0, 0)
	m.Changed(m.guarded, ^m.guarded)
}

// TryLock is a step.
func (m *Mutex) TryLock() bool {
	m.Step(modelcheck.TryLock, nil)
	if m.held {
		m.Record(modelcheck.TryLock, 0, 0, 0)
		return false
	}
	m.held = true
	m.Record(modelcheck.TryLock, m.guarded|1, 0, 1)
	m.Changed(m.guarded, ^m.guarded)
	return true
}

// Unlock is a step that never waits.
func (m *Mutex) Unlock() {
	m.Step(modelcheck.Unlock, nil)
	if !m.held {
		panic("unlock of an unlocked mutex")
	}
	m.held = false
	old := m.guarded
	if m.digest != nil {
		m.guarded = m.digest()
	} else {
		m.guarded = modelcheck.Seen()
	}
	m.Changed(^old, m.guarded)
	m.Record(modelcheck.Unlock, 0, 0, 0)
	modelcheck.Publish()
}
