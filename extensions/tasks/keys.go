package tasks

import (
	"fmt"
	"strings"
)

// Rows of the store. An agent is named in them by its id: main, or that of its
// task, which no other one ever has. Numbers rise, so rows lie in their order.
const (
	taskPrefix    = "task/"    // root/name: Task
	promptPrefix  = "prompt/"  // id: text
	resultPrefix  = "result/"  // id: Result
	queuePrefix   = "queue/"   // root/agent: queue
	queuedPrefix  = "queued/"  // root/agent/number: name of a task that has not begun
	workingPrefix = "working/" // root/agent/id: name of one that has begun and not finished
	inboxPrefix   = "inbox/"   // root/agent/sender/number: Item
	orderPrefix   = "order/"   // root/agent/number: sender of an item, in the order of arrival
	unnamedPrefix = "unnamed/" // root/number: sender of a result that main was not told of
	namedPrefix   = "named/"   // root/number: number of the notice that has told main of it
	noticePrefix  = "notice/"  // root: notice
	followPrefix  = "follow/"  // root/number: follow
	fencePrefix   = "fence/"   // root: that people wait there; written with each of their waits
	countPrefix   = "count/"   // root: the newest number in a name that was made up, about
)

func taskKey(root, name string) string       { return taskPrefix + root + "/" + name }
func queueKey(root, agent string) string     { return queuePrefix + root + "/" + agent }
func queuedOf(root, agent string) string     { return queuedPrefix + root + "/" + agent + "/" }
func workingOf(root, agent string) string    { return workingPrefix + root + "/" + agent + "/" }
func inboxOf(root, agent string) string      { return inboxPrefix + root + "/" + agent + "/" }
func from(root, agent, sender string) string { return inboxOf(root, agent) + sender + "/" }
func orderOf(root, agent string) string      { return orderPrefix + root + "/" + agent + "/" }
func unnamedOf(root string) string           { return unnamedPrefix + root + "/" }
func namedOf(root string) string             { return namedPrefix + root + "/" }
func followsOf(root string) string           { return followPrefix + root + "/" }

// place is a number as the last part of a key.
func place(number int64) string { return fmt.Sprintf("%016x", number) }

// lastOf is the last part of a key.
func lastOf(key string) string { return key[strings.LastIndexByte(key, '/')+1:] }

// rootOf is the root of a key that has one.
func rootOf(key string) string {
	_, behind, _ := strings.Cut(key, "/")
	root, _, _ := strings.Cut(behind, "/")
	return root
}
