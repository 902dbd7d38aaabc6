package tasks

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
)

const maxName = 64

// validName reports whether a text has the form of a name. (As a regular
// expression it would take 2 MiB.)
func validName(s string) bool {
	n := 0
	for _, r := range s {
		if letter := unicode.IsLetter(r) || unicode.IsNumber(r); !letter && (n == 0 || !strings.ContainsRune("_.-", r)) {
			return false
		}
		n++
	}
	return n > 0 && n <= maxName
}

// generatedPrefix begins a generated name; a number follows.
const generatedPrefix = "task-"

// newName returns the name of a new task: the requested one or a generated one,
// and deletes the rows of a finished task with that name. On a first attempt a
// generated name is not looked up: the commit conflicts if it is taken.
func (c *change) newName(root, asked string, again bool) (string, error) {
	if asked != "" {
		if !validName(asked) || asked == main {
			return "", words.Errorf("%q is not a valid task name: begin with a letter or digit, then use letters, "+
				"digits, _ . or -, at most 64 in all; %q is reserved", asked, main)
		}
		free, err := c.nameFree(root, asked)
		if err == nil && !free {
			err = words.Errorf("the name %q is taken in this conversation: choose another name", asked)
		}
		return asked, err
	}
	for {
		n, err := c.nextNameNumber(root)
		if err != nil {
			return "", err
		}
		name := generatedPrefix + strconv.Itoa(n)
		free := true
		if again || c.rows[taskKey(root, name)] != nil {
			free, err = c.nameFree(root, name)
		}
		if err != nil || free {
			// Only the starting point after a restart, so concurrent pushes may
			// overwrite each other's number.
			c.effect(sdk.Put(countPrefix+root, n))
			return name, err
		}
	}
}

// nextNameNumber returns the next number for a generated name.
func (c *change) nextNameNumber(root string) (int, error) {
	c.mu.Lock()
	_, known := c.nameNumbers[root]
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
	c.nameNumbers[root] = max(c.nameNumbers[root], stored) + 1
	return c.nameNumbers[root], nil
}

// nameFree reports whether a name can be used: that of a finished task can once
// its result was collected.
func (c *change) nameFree(root, name string) (bool, error) {
	old, err := read[Task](c, taskKey(root, name))
	if err != nil || old == nil || old.State != Finished {
		return old == nil, err
	}
	if uncollected, err := c.any(inboxFrom(root, old.RequesterID, name)); err != nil || uncollected {
		return false, err
	}
	c.forgetTask(old)
	return true, nil
}

// forgetTask deletes the rows of a task.
func (c *change) forgetTask(task *Task) {
	c.write(taskKey(task.Root, task.Name), nil)
	c.forgetPrompt(task.ID)
	c.effect(sdk.Delete(promptPrefix+task.ID), sdk.Delete(resultPrefix+task.ID))
}
