package tasks

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/switchboard-run/switchboard/sdk"
)

const longestName = 64

// isName says whether a text is a name in form. (The regular expression of it
// takes 2 MiB.)
func isName(s string) bool {
	n := 0
	for _, r := range s {
		if letter := unicode.IsLetter(r) || unicode.IsNumber(r); !letter && (n == 0 || !strings.ContainsRune("_.-", r)) {
			return false
		}
		n++
	}
	return n > 0 && n <= longestName
}

// madeUp begins a name that nobody has chosen; a number is behind it.
const madeUp = "task-"

// newName is a name for a new task: the one asked for, or one that is made up.
// What is left of a task that had it is removed. One that is made up is looked at
// only if the last one was taken.
func (c *change) newName(root, asked string, again bool) (string, error) {
	if asked != "" {
		if !isName(asked) || asked == main {
			return "", fmt.Errorf("%q cannot be a name: letters, digits, and then also _ . - , at most 64, and not %q", asked, main)
		}
		free, err := c.free(root, asked)
		if err == nil && !free {
			err = fmt.Errorf("the name %q is taken in this conversation: choose another one", asked)
		}
		return asked, err
	}
	for {
		n, err := c.nextNumber(root)
		if err != nil {
			return "", err
		}
		name := madeUp + strconv.Itoa(n)
		free := true
		if again || c.rows[taskKey(root, name)] != nil { // otherwise a name that is taken is noticed as the task is stored
			free, err = c.free(root, name)
		}
		if err != nil || free {
			// It only says where to look after a restart, so the last one to be
			// written may be any of those that are made at the same time.
			c.effect(sdk.Put(countPrefix+root, n))
			return name, err
		}
	}
}

// nextNumber is the next number of a name that is made up.
func (c *change) nextNumber(root string) (int, error) {
	c.mu.Lock()
	_, known := c.names[root]
	c.mu.Unlock()
	stored := 0
	if !known {
		n, err := readOrNew[int](c, countPrefix+root)
		if err != nil {
			return 0, err
		}
		stored = *n
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names[root] = max(c.names[root], stored) + 1
	return c.names[root], nil
}

// free says whether nobody has a name: one of a task that has finished is free
// once its result was collected.
func (c *change) free(root, name string) (bool, error) {
	old, err := read[Task](c, taskKey(root, name))
	if err != nil || old == nil || old.State != Finished {
		return old == nil, err
	}
	if lies, err := c.any(from(root, old.RequesterID, name)); err != nil || lies {
		return false, err
	}
	c.forgetTask(old)
	return true, nil
}

// forgetTask removes the rows of a task that has finished.
func (c *change) forgetTask(task *Task) {
	c.write(taskKey(task.Root, task.Name), nil)
	c.forgetPrompt(task.ID)
	c.effect(sdk.Delete(promptPrefix+task.ID), sdk.Delete(resultPrefix+task.ID))
}
