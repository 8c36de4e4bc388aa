// Publishes one event of family-portal over HTTP, with the standard library only: go run publish.go
//
// EVENTS_API_URL   the address of events-api
// EVENTS_API_KEY   an API key for `events:publish`, bound to the app
package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

var client = &http.Client{Timeout: 30 * time.Second}

// publish returns once the event is accepted. The id makes a repetition harmless.
func publish(event map[string]any, attempts int) error {
	body, err := json.Marshal(event)
	if err != nil {
		return err
	}
	pause := time.Second
	for attempt := 1; ; attempt++ {
		isTransient, wait, err := publishOnce(body)
		if err == nil || !isTransient || attempt == attempts {
			return err
		}
		time.Sleep(wait + pause)
		pause *= 2
	}
}

// publishOnce returns whether the error is transient, and the server's Retry-After.
func publishOnce(body []byte) (bool, time.Duration, error) {
	url := strings.TrimRight(os.Getenv("EVENTS_API_URL"), "/") + "/v1/events"
	request, err := http.NewRequest("POST", url, bytes.NewReader(body))
	if err != nil {
		return false, 0, err
	}
	request.Header.Set("Content-Type", "application/cloudevents+json")
	request.Header.Set("Authorization", "Bearer "+os.Getenv("EVENTS_API_KEY"))
	response, err := client.Do(request)
	if err != nil {
		return true, 0, err
	}
	defer response.Body.Close()
	detail, _ := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if response.StatusCode == http.StatusAccepted {
		return false, 0, nil
	}
	seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
	isTransient := response.StatusCode == http.StatusTooManyRequests || response.StatusCode >= 500
	return isTransient, time.Duration(seconds) * time.Second, fmt.Errorf("status %d: %s", response.StatusCode, detail)
}

func main() {
	id := make([]byte, 16)
	if _, err := rand.Read(id); err != nil {
		panic(err)
	}
	event := map[string]any{
		"specversion": "1.0",
		"id":          hex.EncodeToString(id),
		"source":      "/family-portal/chat",
		"type":        "chat.message.created",
		"time":        time.Now().UTC().Format(time.RFC3339Nano),
		"data": map[string]any{
			"message":      map[string]any{"id": 123, "text": "Dinner is at seven.", "thread_id": nil},
			"sender":       map[string]any{"id": 456, "name": "Pat"},
			"participants": []int{456, 457, 458},
		},
	}
	if err := publish(event, 5); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("accepted", event["id"])
}
