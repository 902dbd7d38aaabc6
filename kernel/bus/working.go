package bus

// Working are the leases of turns that agents have in their hands now.
func (t *Tx) Working() (all []*Lease) {
	t.bus.mu.Lock()
	defer t.bus.mu.Unlock()
	for _, l := range t.bus.leases {
		if l.Agent != "" && l.Call == 0 && l.taken && !l.answered && !l.revoked {
			all = append(all, l)
		}
	}
	return all
}
