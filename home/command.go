package home

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/switchboard-run/switchboard/manifests"
)

// inheritedEnv lists the variables that every extension inherits: the paths of
// programs, files and certificates, the language, the time zone and the proxy.
var inheritedEnv = []string{
	"PATH", "HOME", "TMPDIR", "LANG", "TZ",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
}

var inheritedPrefixes = []string{"LC_", "XDG_", "SSL_CERT_"}

// HarmlessEnviron returns the variables of environ that every extension inherits, and no
// other, such as a secret: what several installations of one program may share.
func HarmlessEnviron(environ []string) (env []string) {
	for _, entry := range environ {
		name, _, ok := strings.Cut(entry, "=")
		if ok && (slices.Contains(inheritedEnv, name) ||
			slices.ContainsFunc(inheritedPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })) {
			env = append(env, entry)
		}
	}
	return env
}

// EnvironLookup looks variables of environ up.
func EnvironLookup(environ []string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, entry := range environ {
			if n, value, _ := strings.Cut(entry, "="); n == name {
				return value, true
			}
		}
		return "", false
	}
}

// allowedEnv returns the environment of an extension: the harmless variables of
// environ (usually os.Environ()), and those that the manifest lists, as NAME (if lookup
// has it) or NAME=value.
func allowedEnv(environ []string, lookup func(string) (string, bool), listed ...string) []string {
	env := HarmlessEnviron(environ)
	for _, entry := range listed {
		if strings.Contains(entry, "=") {
			env = append(env, entry)
		} else if value, ok := lookup(entry); ok {
			env = append(env, entry+"="+value)
		}
	}
	return env
}

// executable returns the path of a command's executable: a path with a slash is
// relative to dir, a bare name is looked up in PATH.
func executable(command []string, dir string) string {
	path := command[0]
	if !strings.ContainsRune(path, filepath.Separator) {
		if found, err := exec.LookPath(path); err == nil {
			return found
		}
		return path
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return path
}

// stamp identifies an executable by its path, inode, size and time of change. It
// changes when the file is replaced.
func stamp(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return path + " missing"
	}
	var inode uint64
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = stat.Ino
	}
	return fmt.Sprintf("%s %d %d %d", path, inode, info.Size(), info.ModTime().UnixNano())
}

// stamps identifies the other files that an extension runs: arguments that are files in its
// directory, such as a script, and the record of its installation, which stands for all.
func stamps(m *manifests.Manifest) (all string) {
	for _, name := range append(slices.Clone(m.Run.Args), manifests.RecordName) {
		if !filepath.IsLocal(name) {
			continue
		}
		file := filepath.Join(m.Dir(), name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			all += " " + stamp(file)
		}
	}
	return all
}
