package kerneltest

import "time"

// EndsQuestions does what the kernel does every few seconds: it ends the
// questions whose time is over.
func (w *World) EndsQuestions() {
	w.T.Helper()
	w.Settle()
	if err := w.Router.EndQuestions(w.T.Context(), w.Bus, time.Now()); err != nil {
		w.T.Fatal(err)
	}
	w.Settle()
}
