package kerneltest

import "path/filepath"

// Dir is where the store is.
func (w *World) Dir() string { return filepath.Dir(w.path) }

// RestartIn is Restart on the store of another directory, such as what a power
// cut has left.
func (w *World) RestartIn(dir string) {
	w.T.Helper()
	w.path = filepath.Join(dir, filepath.Base(w.path))
	w.Restart()
}
