package procfs

import (
	"bytes"
	"iter"
	"os"
	"strconv"
)

// Children returns the pids of the children of a process.
func Children(pid int) (all []int) {
	tasks := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, err := os.ReadDir(tasks)
	if err != nil {
		return nil
	}
	for _, thread := range threads {
		data, err := os.ReadFile(tasks + "/" + thread.Name() + "/children")
		if err != nil {
			continue
		}
		for field := range bytes.FieldsSeq(data) {
			if child, err := strconv.Atoi(string(field)); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}

// Stopped reports whether a signal has stopped a process, which then runs nothing at
// all. One that is busy, or waits for the machine, is not stopped.
func Stopped(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	end := bytes.LastIndexByte(stat, ')') // of the name, which may hold anything
	return err == nil && end >= 0 && bytes.HasPrefix(stat[end:], []byte(") T"))
}

// Environments yields the pids and the environments of the user's processes.
func Environments() iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		entries, err := os.ReadDir("/proc")
		if err != nil {
			return
		}
		for _, e := range entries {
			pid, err := strconv.Atoi(e.Name())
			if err != nil {
				continue
			}
			environ, err := os.ReadFile("/proc/" + e.Name() + "/environ")
			if err == nil && !yield(pid, string(environ)) {
				return
			}
		}
	}
}
