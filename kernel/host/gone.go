package host

// Gone voids the token of a generation. It waits until the answers were read that the
// extension gave before it ended.
func (h *Host) Gone(extension string, generation int64) {
	h.mu.Lock()
	if g := h.running[extension]; g != nil && g.actor.Generation == generation {
		h.mu.Unlock()
		<-g.read
		h.mu.Lock()
	}
	defer h.mu.Unlock()
	for token, c := range h.clients {
		if c.actor.ID == extension && c.actor.Generation == generation {
			delete(h.clients, token)
			c.gone.Store(true)
		}
	}
	if g := h.running[extension]; g != nil && g.actor.Generation == generation {
		delete(h.running, extension)
	}
}

// Stopping notes that an extension was asked to shut down: it may finish its work, and
// gets no more.
func (h *Host) Stopping(extension string) {
	if g := h.instance(extension); g != nil {
		g.stopping.Store(true)
	}
}
