//! What the server tells of itself: history, alerts, causes, profiles, pages, the laboratory. Each module is a topic.

#[path = "../support/mod.rs"]
mod support;

mod alerts;
mod faults_explained;
mod history;
mod http;
mod lab;
mod page;
mod profiles;
mod prometheus;
mod zabbix;
