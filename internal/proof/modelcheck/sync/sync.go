// Package sync stands in for the standard library's in code that is explored.
package sync

import "github.com/seed-181794aa/ratelimit/internal/proof/modelcheck"

// Mutex stands in for the type of that name.
type Mutex struct {
	modelcheck.Object
	held    bool
	guarded uint64        // digest of what the lock guards
	digest  func() uint64 // nil: all that its holders had seen
}

// Guards says how to digest what the lock guards: a value that is the same only if what
// is guarded is.
func (m *Mutex) Guards(digest func() uint64) { m.digest = digest }

// Lock is a step that can be made when the lock is free.
func (m *Mutex) Lock() {
	m.Step(modelcheck.Lock, &m.held)
	m.held = true
	m.Saw(modelcheck.Lock, m.guarded, 0, 0)
	m.Became(m.guarded, ^m.guarded)
}

// TryLock is a step.
func (m *Mutex) TryLock() bool {
	m.Step(modelcheck.TryLock, nil)
	if m.held {
		m.Saw(modelcheck.TryLock, 0, 0, 0)
		return false
	}
	m.held = true
	m.Saw(modelcheck.TryLock, m.guarded|1, 0, 1)
	m.Became(m.guarded, ^m.guarded)
	return true
}

// Unlock is a step that nobody has to wait for.
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
		m.guarded = modelcheck.Local()
	}
	m.Became(^old, m.guarded)
	m.Saw(modelcheck.Unlock, 0, 0, 0)
	modelcheck.Publish()
}
