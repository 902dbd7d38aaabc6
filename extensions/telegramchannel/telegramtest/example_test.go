package telegramtest_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

// A person writes, a bot answers, and the test waits for the answer.
func Example() {
	server, err := telegramtest.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	server.Say(7, "hello?")

	// What a bot does, in one line.
	resp, err := http.PostForm(server.URL()+"/bot"+server.Token()+"/sendMessage",
		url.Values{"chat_id": {"7"}, "text": {"<b>hello</b>"}, "parse_mode": {"HTML"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = resp.Body.Close()

	answer, err := server.WaitMessage(ctx, 7, 1)
	fmt.Println(answer.Text, answer.Entities[0].Type, err)
	// Output: hello bold <nil>
}
