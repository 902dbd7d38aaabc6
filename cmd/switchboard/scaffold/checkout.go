package scaffold

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// BuiltFrom is the checkout of Module that this program was built from, if it is still
// there; empty: a release, or a checkout that was moved.
func BuiltFrom() string {
	_, file, _, _ := runtime.Caller(0) // a path of the module, not of a file, with -trimpath
	if !filepath.IsAbs(file) {
		return ""
	}
	dir := filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(file))))
	if Checkout(dir) != nil {
		return ""
	}
	return dir
}

// Checkout returns an error unless dir has a checkout of Module.
func Checkout(dir string) error {
	data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil || !bytes.HasPrefix(data, []byte("module "+Module)) {
		return fmt.Errorf("%s is not a checkout of %s", dir, Module)
	}
	return nil
}
