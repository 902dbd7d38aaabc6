package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/dustin/go-humanize"

	"github.com/switchboard-run/switchboard/home/backup"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/store/blobfiles"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

// sampleBytes is how many bytes of the files of a running kernel are read without --files.
const sampleBytes = 64 << 20

// closedFiles checks the files of messages that a closed store names.
func (d *diagnosis) closedFiles(h *config.Home) {
	sizes, err := sqlite.Blobs(h.Database())
	if err != nil || len(sizes) == 0 {
		return
	}
	lost, err := blobfiles.Dir(h.Files()).Lost(sizes)
	switch {
	case err != nil:
		d.unreadableFiles(err)
	case len(lost) > 0:
		d.add("Files", levelError, copiesOf(h, lost), "%s missing or damaged in %s: %s", are(len(lost), "file"), h.Files(),
			lost[0])
	default:
		var all int64
		for _, size := range sizes {
			all += size
		}
		d.add("Files", levelOK, "", "%s", messageFiles(len(sizes), all))
	}
}

// openFiles compares the files of messages of a running kernel with their names, which are
// the hashes of their bytes: only the kernel reads its store.
func (d *diagnosis) openFiles(h *config.Home) {
	most := int64(sampleBytes)
	if d.allFiles {
		most = -1
	}
	s, err := blobfiles.Dir(h.Files()).Sample(most)
	switch {
	case err != nil:
		d.unreadableFiles(err)
	case len(s.Damaged) > 0:
		d.add("Files", levelError, copiesOf(h, s.Damaged), "%s damaged in %s: %s", are(len(s.Damaged), "file"), h.Files(),
			s.Damaged[0])
	case s.Read < s.Files:
		d.add("Files", levelOK, "--files reads all of them; missing files are found while no kernel runs",
			"%s; the newest %d are intact", messageFiles(s.Files, s.Bytes), s.Read)
	case s.Files > 0:
		d.add("Files", levelOK, "missing files are found while no kernel runs", "%s, intact",
			messageFiles(s.Files, s.Bytes))
	}
}

func (d *diagnosis) unreadableFiles(err error) {
	d.add("Files", levelError, "", "the files of messages can't be read: %s", err)
}

func messageFiles(n int, bytes int64) string {
	size := humanize.IBytes(uint64(bytes)) //nolint:gosec // not negative
	return fmt.Sprintf("%s of messages (%s)", count(n, "file"), size)
}

// copiesOf says where copies of lost files may be.
func copiesOf(h *config.Home, lost []string) string {
	for _, hash := range lost {
		path := backup.NightlyFiles(h).Path(hash)
		if _, err := os.Stat(path); err == nil {
			return fmt.Sprintf("copy what the nightly backups have: mkdir -p %[2]s && cp %[1]s %[2]s/", path,
				filepath.Dir(blobfiles.Dir(h.Files()).Path(hash)))
		}
	}
	return "a backup may have them: `switchboard backup list`"
}

// backupFiles checks that the newest nightly backup has its files, by their names.
func (d *diagnosis) backupFiles(h *config.Home) {
	for _, found := range backup.List(h) {
		if found.Kind != backup.KindNightly {
			continue
		}
		if lost, err := backup.Missing(found.File); err == nil && len(lost) > 0 {
			d.add("Backups", levelError, "the next nightly backup copies those that the home still has; "+
				"`switchboard backup create` makes one file with everything",
				"%s lacks %s of messages, which %s in %s", filepath.Base(found.File), count(len(lost), "file"),
				belongs(len(lost)), backup.NightlyFiles(h))
		}
		return
	}
}

func belongs(n int) string {
	if n == 1 {
		return "belongs"
	}
	return "belong"
}

// are is "1 file is" or "2 files are".
func are(n int, thing string) string {
	if n == 1 {
		return count(n, thing) + " is"
	}
	return count(n, thing) + " are"
}
